#include "parameter_server/register.hpp"

#include "caftan/caftan.hpp"
#include "caftan/nn/served_module.hpp"
#include "parameter_server/server.hpp"
#include "parameter_server/trainer.hpp"

namespace caftan::parameter_server {

void register_parameter_server(Program& program) {
  program.role<Server>("parameter_server.server")
      .doc("Owns a model that its trainers share, in the consistency mode of the file")
      .uses<Trainer>("trainers", at_least(1));
  program.role<Trainer>("parameter_server.trainer")
      .doc("Trains the model of a parameter server with its images, through distributed autograd")
      .method<&Trainer::open>("open")
      .method<&Trainer::join>("join")
      .method<&Trainer::train>("train")
      .method<&Trainer::measure>("measure")
      .method<&Trainer::leave>("leave");
  program.provide([](Registry& registry) {
    nn::add_module<ServedModel>(registry, "parameter_server.model")
        .constructor<models::ModelName, std::int64_t, std::uint64_t, std::uint64_t>()
        .method<&ServedModel::forward>("forward");
  });
}

}  // namespace caftan::parameter_server
