/// The roles of `actor_critic` and the command `play` for a program with environments of its own. Start with
/// `add_actor_critic`; CMake: `caftan::agents`. docs/guide/own-environment.md has a whole program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::agents {

/// Adds the role types "actor_critic.learner", "actor_critic.actor" and "actor_critic.evaluator", whose settings are in
/// docs/configuration.md, and the command `play RUN`, which shows an episode of the agent that a run has left. Both
/// know all environments of the program, those that are registered later, too.
/// @param program  stays at its place until its `main` has returned
/// Threads: as those of Program. Program::main refuses a program to which they were added twice.
void add_actor_critic(Program& program);

}  // namespace caftan::agents
