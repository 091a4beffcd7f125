#include "batch_parameter_server/register.hpp"

#include "batch_parameter_server/server.hpp"
#include "batch_parameter_server/trainer.hpp"
#include "caftan/caftan.hpp"

namespace caftan::batch_parameter_server {

void register_batch_parameter_server(Program& program) {
  program.role<Server>("batch_parameter_server.server")
      .doc("Owns a model and makes each step of it from one gradient of each trainer")
      .uses<Trainer>("trainers", at_least(1))
      .method<&Server::pull>("pull")
      .batched<&Server::update>("update", &Server::update_limits);
  program.role<Trainer>("batch_parameter_server.trainer")
      .doc("Computes gradients of a batch-updating parameter server's model from its images")
      .method<&Trainer::open>("open")
      .method<&Trainer::train>("train")
      .method<&Trainer::evaluate>("evaluate");
}

}  // namespace caftan::batch_parameter_server
