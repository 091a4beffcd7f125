#include "cartpole_learning/environment.hpp"

#include "caftan/rl/random.hpp"

namespace caftan::cartpole {

std::string environment_id(const ObserverConfig& config) {
  return config.environment == ObserverConfig::Environment::cartpole_v0 ? "CartPole-v0" : "CartPole-v1";
}

std::uint64_t episode_seed(std::uint64_t environment_seed, std::int64_t episode) {
  return rl::derive_seed({environment_seed, static_cast<std::uint64_t>(episode)});
}

}  // namespace caftan::cartpole
