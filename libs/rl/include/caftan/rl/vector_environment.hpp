/// Many environments of one kind that take their steps in one call, with auto-reset: an episode that ends is followed
/// by the next one in the same step. Start with `Environments::make_vector`. Rules: docs/protocols/environments.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"

namespace caftan::rl {

/// What one step of n environments gave. All spans are valid until the next call of the vector environment.
struct VectorStep {
  /// [n, observation_size]: what the next actions answer. Where an episode has ended, the first observation of the
  /// next.
  std::span<const float> observations{};
  std::span<const double> rewards{};           ///< [n]
  std::span<const std::uint8_t> terminated{};  ///< [n], 0 or 1: the task has ended
  std::span<const std::uint8_t> truncated{};   ///< [n], 0 or 1: the time limit has ended the episode
  /// [n, observation_size]: where an episode has ended, its last observation; other rows have no meaning.
  std::span<const float> last_observations{};

  /// Returns whether the episode of environment i has ended in this step.
  bool ended(std::size_t i) const noexcept { return terminated[i] != 0 || truncated[i] != 0; }
};

/// Threads: one at a time.
class VectorEnvironment {
 public:
  virtual ~VectorEnvironment() = default;

  /// Returns the properties of each of the environments; valid as long as the vector environment lives.
  virtual const EnvironmentSpec& spec() const noexcept = 0;
  /// Returns n.
  virtual std::size_t size() const noexcept = 0;

  /// Starts an episode in each environment: environment i is seeded with seed + i, as Gymnasium's are.
  /// @return the first observations, [n, observation_size], valid until the next call
  /// Errors: those of the environments.
  virtual Result<std::span<const float>> reset(std::uint64_t seed) = 0;

  /// Takes one step in each environment, and resets those whose episode ends.
  /// @param actions  [n]
  /// Errors: bad_arguments (the number of actions, one out of range, actions are continuous, or no reset before);
  /// nothing has changed then. Those of the environments, with the number of the one: reset before the next step.
  virtual Result<VectorStep> step(std::span<const std::int32_t> actions) = 0;

  /// As step, for continuous actions.
  /// @param actions  [n, action_size]
  virtual Result<VectorStep> step_continuous(std::span<const float> actions) = 0;
};

/// The arrays that a VectorStep shows, for classes that implement VectorEnvironment.
struct VectorBuffers {
  /// @param n                 environments
  /// @param observation_size  floats of one observation
  VectorBuffers(std::size_t n, std::size_t observation_size);

  std::vector<float> observations;
  std::vector<double> rewards;
  std::vector<std::uint8_t> terminated;
  std::vector<std::uint8_t> truncated;
  std::vector<float> last_observations;

  /// Returns a view of all arrays.
  VectorStep view() const noexcept { return {observations, rewards, terminated, truncated, last_observations}; }
};

/// Returns nothing where `actions` is one action for each of n environments.
/// Errors: bad_arguments, with the number of the environment.
Result<void> check_actions(const EnvironmentSpec& spec, std::size_t n, std::span<const std::int32_t> actions);
/// As the other, for continuous actions. @param actions  [n, action_size]
Result<void> check_actions(const EnvironmentSpec& spec, std::size_t n, std::span<const float> actions);

/// Steps n environments one after the other, each with the bits it has alone.
class SequentialEnvironments final : public VectorEnvironment {
 public:
  /// @param environments  at least one, all with the same spec
  explicit SequentialEnvironments(std::vector<std::unique_ptr<Environment>> environments);

  const EnvironmentSpec& spec() const noexcept override { return environments_.front()->spec(); }
  std::size_t size() const noexcept override { return environments_.size(); }
  Result<std::span<const float>> reset(std::uint64_t seed) override;
  Result<VectorStep> step(std::span<const std::int32_t> actions) override;
  Result<VectorStep> step_continuous(std::span<const float> actions) override;

 private:
  Result<void> take(std::size_t i, const Result<Transition>& taken);
  Error refused(std::size_t i, const Error& error);

  std::vector<std::unique_ptr<Environment>> environments_;
  VectorBuffers buffers_;
  bool started_ = false;
};

}  // namespace caftan::rl
