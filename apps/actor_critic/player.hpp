/// What an actor does between two sets of weights: it plays its environments with its copy of the policy, and records
/// what the learner needs. No calls, no torch. Start with `Player::make`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agents/policy.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/random.hpp"
#include "caftan/rl/vector_environment.hpp"

namespace caftan::actor_critic {

/// T steps of n environments.
struct Trajectories {
  std::uint64_t actor = 0;
  std::uint64_t version = 0;                ///< of the weights that acted
  std::uint64_t steps = 0;                  ///< T
  std::uint64_t environments = 0;           ///< n
  std::vector<float> observations{};        ///< [T + 1, n, observation]: before each action, and after the last
  std::vector<std::int32_t> actions{};      ///< [T, n]; empty where actions are continuous
  std::vector<float> continuous_actions{};  ///< [T, n, action]; empty where actions are discrete
  std::vector<float> log_probabilities{};   ///< [T, n], of the actions
  std::vector<float> rewards{};             ///< [T, n]
  std::vector<std::uint8_t> ends{};         ///< [T, n]: 0, kTerminated or kTruncated
  std::vector<float> last_observations{};   ///< [number of kTruncated, observation], in the order of `ends`
  std::vector<double> returns{};            ///< of the episodes that ended, undiscounted

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& actor& version& steps& environments& observations& actions& continuous_actions& log_probabilities;
    archive& rewards& ends& last_observations& returns;
  }
};

inline constexpr std::uint8_t kTerminated = 1;  ///< the task has ended, whether the time has or not
inline constexpr std::uint8_t kTruncated = 2;   ///< only the time has ended: what follows has a value

/// Returns nothing where all arrays fit the shape and each other.
/// Errors: bad_arguments, with the array.
Result<void> check_trajectories(const Trajectories& trajectories, const agents::PolicyShape& shape);

/// Threads: one at a time.
class Player {
 public:
  /// @param environments  not null
  /// @param shape         of the policy, for the spec of the environments
  /// @param seed          of environments and actions
  Player(std::unique_ptr<rl::VectorEnvironment> environments, const agents::PolicyShape& shape, std::uint64_t seed);

  const rl::EnvironmentSpec& spec() const noexcept { return environments_->spec(); }

  /// Begins all episodes anew, with random numbers that follow from seed and part.
  /// Errors: those of the environments.
  Result<void> begin_part(std::uint64_t part);

  /// Takes the weights that act from now on. Errors: those of Policy::load.
  Result<void> load(std::span<const float> weights) { return policy_.load(weights); }

  /// Plays `steps` steps, at least 1, of each environment. Actor and version of what it returns are the caller's.
  /// Precondition: begin_part. Errors: those of the environments.
  Result<Trajectories> play(std::uint64_t steps);

 private:
  std::unique_ptr<rl::VectorEnvironment> environments_;
  agents::Policy policy_;
  std::uint64_t seed_;
  rl::Pcg64 random_{0};
  std::vector<float> observations_;  // what the next actions answer
  std::vector<double> returns_;      // so far, of the episode of each environment
  agents::Actions actions_;
  std::vector<float> bounded_;
};

}  // namespace caftan::actor_critic
