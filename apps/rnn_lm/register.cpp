#include "register.hpp"

#include "caftan/caftan.hpp"
#include "trainer.hpp"

namespace caftan::rnn_lm {

void register_rnn_lm(Program& program) {
  program.role<ParameterServer>("rnn_lm.ps")
      .doc("Holds the embedding table, the decoder, or both, of a language model")
      .method<&ParameterServer::open>("open")
      .method<&ParameterServer::embed>("embed")
      .method<&ParameterServer::decode>("decode")
      .method<&ParameterServer::snapshot>("snapshot")
      .method<&ParameterServer::load>("load");
  program.role<Trainer>("rnn_lm.trainer")
      .doc("Trains a character language model whose LSTM it holds, and whose other parts are on other workers")
      .uses<ParameterServer>("embedding")
      .uses<ParameterServer>("decoder");
}

}  // namespace caftan::rnn_lm
