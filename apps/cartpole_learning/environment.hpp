/// Which environment an observer steps, and where its episodes start.
#pragma once

#include <cstdint>
#include <string>

#include "cartpole_learning/observer_config.hpp"

namespace caftan::cartpole {

/// Returns the id of an observer's environment, as `rl::make_environment` takes it.
std::string environment_id(const ObserverConfig& config);

/// Returns the seed from which an observer's environment starts in an episode.
/// @param environment_seed  the observer's own seed, or a seed that all observers share
std::uint64_t episode_seed(std::uint64_t environment_seed, std::int64_t episode);

}  // namespace caftan::cartpole
