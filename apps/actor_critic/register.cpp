#include "actor_critic/register.hpp"

#include "actor_critic/actor.hpp"
#include "actor_critic/evaluator.hpp"
#include "actor_critic/learner.hpp"
#include "caftan/caftan.hpp"

namespace caftan::actor_critic {

void register_actor_critic(Program& program) {
  program.role<Actor>("actor_critic.actor")
      .doc("Plays environments with a copy of the learner's policy, and sends what it has played")
      .method<&Actor::open>("open")
      .method<&Actor::play>("play");
  program.role<Evaluator>("actor_critic.evaluator")
      .doc("Plays whole episodes with the most probable actions, apart from the training")
      .method<&Evaluator::open>("open")
      .method<&Evaluator::evaluate>("evaluate");
  program.role<Learner>("actor_critic.learner")
      .doc("Learns a policy and values from what its actors play, with V-trace or clipped ratios")
      .uses<Actor>("actors", at_least(1))
      .uses<Evaluator>("evaluator", at_most(1, 0))
      .environment("environment", &LearnerConfig::environment)
      .method<&Learner::take>("take")
      .method<&Learner::weights>("weights");
}

}  // namespace caftan::actor_critic
