/// One episode of an agent, step by step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agents/policy.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"
#include "play/scene.hpp"

namespace caftan::play {

struct Episode {
  std::vector<Scene> scenes{};    ///< before each action, and after the last
  std::vector<double> returns{};  ///< undiscounted, at each scene
  bool truncated = false;         ///< only the time has ended
  bool cut = false;               ///< it was longer than `most_steps`
};

/// Plays with the most probable actions.
/// @param name  of the environment, as scene_of takes it
/// Errors: bad_arguments (a policy for other observations or actions), those of the environment.
Result<Episode> play_episode(rl::Environment& environment, const std::string& name, agents::Policy& policy,
                             std::uint64_t seed, std::int64_t most_steps);

/// Returns nothing where a policy is for the observations and actions of an environment.
/// Errors: bad_arguments, with what differs.
Result<void> check_fits(const agents::PolicyShape& shape, const rl::EnvironmentSpec& spec);

}  // namespace caftan::play
