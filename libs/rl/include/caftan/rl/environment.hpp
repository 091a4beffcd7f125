/// The interface of an environment with discrete actions, a wrapper that limits the length of episodes, and a function
/// that makes a registered environment by its id. Start with `make_environment`. Needs no torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "caftan/base/result.hpp"

namespace caftan::rl {

/// The properties of an environment that never change.
struct EnvironmentSpec {
  std::string id;                     ///< for example "CartPole-v1"
  std::size_t observation_size = 0;   ///< floats of one observation
  int actions = 0;                    ///< actions are 0 .. actions - 1
  int max_steps = 0;                  ///< an episode is truncated at this step; 0 = never
  std::optional<double> solved_at{};  ///< the return above which the environment counts as solved
};

/// What one step gave. `terminated` is the task's own end, `truncated` the time limit's; both may hold. Only an
/// episode that is truncated and not terminated would have gone on, which is what bootstrapping needs to know.
struct Transition {
  std::span<const float> observation;  ///< [observation_size], valid until the next call of the environment
  double reward = 0;
  bool terminated = false;
  bool truncated = false;

  /// Returns whether the episode is over, for either reason.
  bool ended() const noexcept { return terminated || truncated; }
};

/// Threads: one at a time.
class Environment {
 public:
  virtual ~Environment() = default;

  /// Returns the properties of the environment that never change; valid as long as the environment lives.
  virtual const EnvironmentSpec& spec() const noexcept = 0;

  /// Seeds the environment's random numbers and starts an episode.
  /// @return the first observation, [observation_size], valid until the next call
  virtual std::span<const float> reset(std::uint64_t seed) = 0;

  /// Starts an episode with the next numbers of the environment's random generator.
  virtual std::span<const float> reset() = 0;

  /// Takes one step.
  /// Errors: bad_arguments (the action is out of range, or the episode has ended: reset first); nothing has changed
  /// then.
  virtual Result<Transition> step(int action) = 0;
};

/// Truncates the episodes of another environment at `max_steps` > 0.
/// Source: gymnasium.wrappers.TimeLimit, which likewise leaves `terminated` as it is on the last step.
class TimeLimit final : public Environment {
 public:
  TimeLimit(std::unique_ptr<Environment> inner, int max_steps);

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  std::span<const float> reset(std::uint64_t seed) override;
  std::span<const float> reset() override;
  Result<Transition> step(int action) override;

 private:
  std::unique_ptr<Environment> inner_;
  EnvironmentSpec spec_;
  int steps_ = 0;
};

/// Makes a registered environment with its registered time limit.
/// @param id  CartPole-v0 (200 steps, solved at 195) | CartPole-v1 (500 steps, solved at 475)
/// Errors: bad_arguments (no such id; the text lists those there are).
Result<std::unique_ptr<Environment>> make_environment(std::string_view id);

}  // namespace caftan::rl
