#include "ps_bench/register.hpp"

#include "caftan/caftan.hpp"
#include "ps_bench/master.hpp"
#include "ps_bench/server.hpp"
#include "ps_bench/trainer.hpp"

namespace caftan::ps_bench {

void register_ps_bench(Program& program) {
  program.role<Server>("ps_bench.server")
      .doc("Averages the gradients of its trainers, or makes steps of them, and measures how long that takes")
      .method<&Server::open>("open")
      .method<&Server::update>("update")
      .method<&Server::report>("report");
  program.role<Trainer>("ps_bench.trainer")
      .doc("Computes gradients of a model that learns nothing, sends them to its servers, and measures each part")
      .method<&Trainer::open>("open")
      .method<&Trainer::train>("train");
  program.role<Master>("ps_bench.master")
      .doc("Measures parameter servers and their trainers, as PyTorch's benchmark of parameter servers does")
      .uses<Server>("servers", at_least(1))
      .uses<Trainer>("trainers", at_least(1));
}

}  // namespace caftan::ps_bench
