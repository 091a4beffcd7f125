/// One observer's episode as the agent learns from it, and how an observer plays one on its own with a copy of the
/// policy.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"
#include "caftan/rl/trajectory.hpp"
#include "cartpole_learning/policy.hpp"

namespace caftan::cartpole {

/// The T steps of an episode, with the dropout masks under which the actions were chosen.
struct EpisodeRecord {
  rl::Trajectory trajectory;
  std::vector<std::uint64_t> kept;        ///< [T, mask_words], as `Policy::sample_action` fills them
  std::array<std::uint64_t, 4> random{};  ///< state of the stream of masks and actions after the last step

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& trajectory& kept;
    for (std::uint64_t& word : random) archive& word;
  }
};

/// An observation as a state. Precondition: four values.
State to_state(std::span<const float> observation) noexcept;

/// Chooses an action and appends it to the record, mask and all; the reward is appended when it is known.
int choose_action(const Policy& policy, const State& state, rl::Pcg64& random, EpisodeRecord& record);

/// One of several states that are answered together, and the record that its action becomes part of.
struct Asked {
  State state{};
  rl::Pcg64* random = nullptr;      ///< the stream of masks and actions; not null
  EpisodeRecord* record = nullptr;  ///< not null
};
/// As choose_action for each, in this order and with the same bits: one pass over the policy's weights for all.
std::vector<int> choose_actions(const Policy& policy, std::span<const Asked> asked);

/// Plays one episode until it ends or `budget` steps are taken.
/// @param environment_seed  where the episode starts
/// @param random            the stream of masks and actions
/// @param budget            env steps, >= 1
/// Errors: bad_arguments (the environment's observations or actions are not CartPole's).
Result<EpisodeRecord> roll_out(const Policy& policy, rl::Environment& environment, std::uint64_t environment_seed,
                               rl::Pcg64 random, std::int64_t budget);

/// Plays whole episodes, always taking the more probable action, without dropout.
/// @param seed  episode i starts from the seed derived from (seed, i)
/// @return the sum of rewards of each, [episodes]
/// Errors: bad_arguments (the environment's observations or actions are not CartPole's).
Result<std::vector<double>> evaluate_greedily(const Policy& policy, rl::Environment& environment, std::uint64_t seed,
                                              std::int64_t episodes);

}  // namespace caftan::cartpole
