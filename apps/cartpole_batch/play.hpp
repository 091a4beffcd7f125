/// One call of an observer: a fixed number of env steps, with resets inside, and what the agent gets of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"
#include "cartpole_learning/policy.hpp"

namespace caftan::cartpole_batch {

/// What T env steps gave. The environment is reset as often as its episode ends: the steps between two resets are a
/// sub-episode.
struct Play {
  std::vector<double> returns{};  ///< discounted, [T]; each sub-episode on its own
  std::vector<double> rewards{};  ///< sum of each sub-episode's rewards, in their order
  bool is_cut = false;            ///< the last sub-episode had not ended when the steps were used up

  /// Returns the mean reward of the sub-episodes that ended; of the one that was cut if there is no other.
  /// Precondition: rewards is not empty.
  double mean_reward() const;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& returns& rewards& is_cut;
  }
};

/// Asks for the action on a state.
using Choose = std::function<Result<int>(const cartpole::State&)>;

struct PlayOptions {
  std::uint64_t seed = 0;  ///< sub-episode i starts from the seed derived from (seed, i)
  std::int64_t steps = 500;
  double gamma = 1;
};

/// Plays exactly `steps` env steps.
/// Errors: bad_arguments (steps < 1, or an action that the environment does not have); those of `choose`.
Result<Play> play(rl::Environment& environment, const PlayOptions& options, const Choose& choose);

}  // namespace caftan::cartpole_batch
