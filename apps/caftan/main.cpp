// The caftan command: the built-in applications behind the command line that every Program has, and `certs`,
// `new`, `play`, `sim`.
#include "batch_parameter_server/register.hpp"
#include "caftan/agents/actor_critic.hpp"
#include "caftan/caftan.hpp"
#include "cartpole/register.hpp"
#include "cartpole_batch/register.hpp"
#include "certs/certs.hpp"
#include "cqn/register.hpp"
#include "hybrid_ddp/register.hpp"
#include "new_project/new_project.hpp"
#include "parameter_server/register.hpp"
#include "phold/register.hpp"
#include "pipeline/register.hpp"
#include "ps_bench/register.hpp"
#include "quarter_car/register.hpp"
#include "rl_bench/register.hpp"
#include "rnn_lm/register.hpp"
#include "sim_commands/sim_command.hpp"

int main(int argc, char** argv) {
  caftan::Program program("caftan");
  caftan::agents::add_actor_critic(program);  // play, too
  caftan::batch_parameter_server::register_batch_parameter_server(program);
  caftan::cartpole::register_cartpole(program);
  caftan::cartpole_batch::register_cartpole_batch(program);
  caftan::hybrid_ddp::register_hybrid_ddp(program);
  caftan::parameter_server::register_parameter_server(program);
  caftan::ps_bench::register_ps_bench(program);
  caftan::pipeline::register_pipeline(program);
  caftan::rl_bench::register_rl_bench(program);
  caftan::rnn_lm::register_rnn_lm(program);
  caftan::phold::register_phold(program);
  caftan::cqn::register_cqn(program);
  caftan::quarter_car::register_quarter_car(program);
  program.command(caftan::sim_commands::kUsage, caftan::sim_commands::run_command);
  program.command(caftan::certs::kUsage, caftan::certs::run_command);
  program.command(caftan::new_project::kUsage, caftan::new_project::run_command);
  return program.main(argc, argv);
}
