/// Adds the role types of actors, learner and evaluator to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::actor_critic {

/// Registers "actor_critic.learner", "actor_critic.actor" and "actor_critic.evaluator".
void register_actor_critic(Program& program);

}  // namespace caftan::actor_critic
