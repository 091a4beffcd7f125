/// The interface of an environment, its properties, and a wrapper that limits the length of episodes. Start with
/// `make_environment`; `environments.hpp` has the names of a program, `vector_environment.hpp` many environments in one
/// call. Needs no torch. Rules: docs/protocols/environments.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::rl {

/// The properties of an environment that never change. Policies take their sizes from it.
struct EnvironmentSpec {
  std::string id;                     ///< for example "CartPole-v1"
  std::size_t observation_size = 0;   ///< floats of one observation
  int actions = 0;                    ///< actions are 0 .. actions - 1; 0 = actions are continuous
  int max_steps = 0;                  ///< an episode is truncated at this step; 0 = never
  std::optional<double> solved_at{};  ///< the return above which the environment counts as solved
  std::vector<float> action_low{};    ///< least useful value of each part of a continuous action, [action_size()]
  std::vector<float> action_high{};   ///< greatest useful value of each, [action_size()]; environments clip

  /// Returns whether actions are vectors of floats.
  bool is_continuous() const noexcept { return actions == 0; }
  /// Returns the floats of one continuous action; 0 where actions are discrete.
  std::size_t action_size() const noexcept { return action_low.size(); }

  bool operator==(const EnvironmentSpec&) const = default;
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

/// The first observation of an episode, [observation_size], valid until the next call of the environment.
using FirstObservation = Result<std::span<const float>>;

/// One of `step` and `step_continuous` is overridden: the one for the actions of its spec. Threads: one at a time.
class Environment {
 public:
  virtual ~Environment() = default;

  /// Returns the properties of the environment that never change; valid as long as the environment lives.
  virtual const EnvironmentSpec& spec() const noexcept = 0;

  /// Seeds the environment's random numbers and starts an episode: equal seeds, equal episodes.
  /// Errors: those of the environment.
  virtual FirstObservation reset(std::uint64_t seed) = 0;

  /// Starts an episode with the next numbers of the environment's random generator. Errors: those of the environment.
  virtual FirstObservation reset() = 0;

  /// Takes one step.
  /// Errors: bad_arguments (the action is out of range, actions are continuous, or the episode has ended: reset first);
  /// nothing has changed then. Those of the environment.
  virtual Result<Transition> step(int action);

  /// Takes one step.
  /// @param action  [action_size()], finite; the environment clips what is out of its bounds
  /// Errors: bad_arguments (the size, a value that is not finite, actions are discrete, or the episode has ended);
  /// nothing has changed then. Those of the environment.
  virtual Result<Transition> step_continuous(std::span<const float> action);
};

/// Truncates the episodes of another environment at `max_steps` > 0.
/// Source: gymnasium.wrappers.TimeLimit, which likewise leaves `terminated` as it is on the last step.
class TimeLimit final : public Environment {
 public:
  TimeLimit(std::unique_ptr<Environment> inner, int max_steps);

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step(int action) override;
  Result<Transition> step_continuous(std::span<const float> action) override;

 private:
  FirstObservation begun(FirstObservation first);
  Result<Transition> counted(Result<Transition> taken);
  bool is_over() const noexcept { return steps_ >= spec_.max_steps; }

  std::unique_ptr<Environment> inner_;
  EnvironmentSpec spec_;
  int steps_ = 0;
};

/// Makes an environment that ships, with its registered time limit; those of a program come from its `Environments`.
/// @param id  CartPole-v1 and the others of docs/guide/environments.md
/// Errors: bad_arguments (no such id; the text has the nearest one and lists those there are).
Result<std::unique_ptr<Environment>> make_environment(std::string_view id);

/// The error of a step after the end of an episode, or before the first reset: bad_arguments.
Error step_after_end(const EnvironmentSpec& spec);

/// Returns nothing where an environment with discrete actions has `action`.
/// Errors: bad_arguments, with the actions there are.
Result<void> check_action(const EnvironmentSpec& spec, int action);
/// Returns nothing where `action` has the size of a continuous action and finite values.
/// Errors: bad_arguments, with what is wrong.
Result<void> check_action(const EnvironmentSpec& spec, std::span<const float> action);

}  // namespace caftan::rl
