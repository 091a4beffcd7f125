#include "hybrid_ddp/register.hpp"

#include "caftan/caftan.hpp"
#include "hybrid_ddp/master.hpp"
#include "hybrid_ddp/ps.hpp"
#include "hybrid_ddp/trainer.hpp"

namespace caftan::hybrid_ddp {

void register_hybrid_ddp(Program& program) {
  program.role<Master>("hybrid_ddp.master")
      .doc("Lets trainers learn which text a passage is from: an embedding on a server, a replicated dense layer")
      .uses<ParameterServer>("ps")
      .uses<Trainer>("trainers", at_least(2));
  program.role<ParameterServer>("hybrid_ddp.ps").doc("A worker for the embedding of hybrid data parallelism");
  program.role<Trainer>("hybrid_ddp.trainer")
      .doc("Trains its replica of the dense layer, and the embedding on the server")
      .method<&Trainer::open>("open")
      .method<&Trainer::join>("join")
      .method<&Trainer::train>("train")
      .method<&Trainer::measure>("measure")
      .method<&Trainer::save>("save")
      .method<&Trainer::load>("load")
      .method<&Trainer::leave>("leave");
  program.provide([](Registry& registry) {
    nn::add_module<WordBags>(registry, "hybrid_ddp.words")
        .constructor<std::int64_t, std::int64_t, bool, std::uint64_t>()
        .method<&WordBags::forward>("forward");
  });
}

}  // namespace caftan::hybrid_ddp
