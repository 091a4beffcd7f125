/// The role type "actor_critic.evaluator": plays whole episodes with weights that the learner sends, apart from the
/// training.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actor_critic/config.hpp"
#include "actor_critic/messages.hpp"
#include "agents/environments.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/vector_environment.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::actor_critic {

class Evaluator {
 public:
  using Config = EvaluatorConfig;

  Evaluator(RoleContext& context, Config config);

  /// Makes an environment for each episode. Errors: those of make_environments.
  Result<EnvironmentFacts> open(agents::EnvironmentChoice choice);

  /// Plays the episodes with the most probable actions.
  /// @param number  evaluations with other numbers play other episodes
  /// @return the undiscounted return of each
  /// Errors: bad_arguments (not opened, weights of another shape), those of the environments.
  Result<std::vector<double>> evaluate(agents::PolicyShape shape, at::Tensor weights, std::uint64_t number);

 private:
  RoleContext& context_;
  Config config_;
  std::unique_ptr<rl::VectorEnvironment> environments_{};  ///< from `open` on
};

}  // namespace caftan::actor_critic
