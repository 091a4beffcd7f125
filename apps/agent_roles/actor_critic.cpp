#include "caftan/agents/actor_critic.hpp"

#include "actor_critic/register.hpp"
#include "caftan/caftan.hpp"
#include "play/play_command.hpp"

namespace caftan::agents {

void add_actor_critic(Program& program) {
  actor_critic::register_actor_critic(program);
  program.command(play::kPlayUsage, [&program](int argc, char** argv) {
    return play::run_play_command(program.name(), *program.catalog().environments(), argc, argv);
  });
}

}  // namespace caftan::agents
