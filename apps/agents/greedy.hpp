/// Episodes in which a policy always takes its most probable action. Start with `play_greedily`.
#pragma once

#include <cstdint>
#include <vector>

#include "agents/policy.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/vector_environment.hpp"

namespace caftan::agents {

/// Steps environments by what a policy chose.
/// @param bounded  memory for continuous actions, kept between calls
/// Errors: those of the environments.
Result<rl::VectorStep> step_environments(rl::VectorEnvironment& environments, const Actions& actions,
                                         std::vector<float>& bounded);

/// Plays one episode in each environment.
/// @param most_steps  an episode that is longer is cut
/// @return the undiscounted return of each. Errors: those of the environments.
Result<std::vector<double>> play_greedily(rl::VectorEnvironment& environments, Policy& policy, std::uint64_t seed,
                                          std::int64_t most_steps);

/// Returns the mean; 0 of none.
double mean_of(const std::vector<double>& values) noexcept;

}  // namespace caftan::agents
