/// A policy that acts: a perceptron over plain floats, for many observations at once. No torch: a step of 16
/// environments costs less than a call of it. Learners have the same parameters as tensors. Start with `load` and
/// `act`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"

namespace caftan::agents {

/// The sizes of a policy. An output is the logit of a discrete action, or the mean of a part of a continuous one.
struct PolicyShape {
  std::size_t observation = 0;
  std::size_t hidden = 64;  ///< units of each hidden layer
  std::size_t layers = 2;   ///< hidden layers
  std::size_t outputs = 0;
  bool continuous = false;
  bool relu = false;  ///< the hidden units are those of ReLU; false: tanh

  bool operator==(const PolicyShape&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& observation& hidden& layers& outputs& continuous& relu;
  }
};

/// Returns the shape of a policy with tanh units for an environment.
PolicyShape shape_for(const rl::EnvironmentSpec& spec, std::size_t hidden, std::size_t layers);

/// Returns the floats of a policy's weights: mean and scale of each part of an observation, then weight [out, in] and
/// bias [out] of each layer, then the logarithms of the deviations of a continuous policy.
std::size_t weight_count(const PolicyShape& shape) noexcept;

/// The largest absolute value of a part of an observation after its mean was subtracted and it was scaled.
inline constexpr float kObservationLimit = 10.0F;

/// What a policy chose for n observations.
struct Actions {
  std::vector<std::int32_t> discrete{};    ///< [n]; empty where actions are continuous
  std::vector<float> continuous{};         ///< [n, outputs], before `to_bounds`; empty where actions are discrete
  std::vector<float> log_probabilities{};  ///< [n]; empty of greedy ones
};

/// Threads: one at a time.
class Policy {
 public:
  /// All weights are 0 until the first `load`.
  explicit Policy(const PolicyShape& shape);

  const PolicyShape& shape() const noexcept { return shape_; }

  /// Errors: bad_arguments (another number of weights); nothing has changed then.
  Result<void> load(std::span<const float> weights);

  /// Draws an action for each observation: a uniform number each, of a continuous action two for each part.
  /// @param observations  [n, observation]
  void act(std::span<const float> observations, rl::Pcg64& random, Actions& out);

  /// Chooses the most probable action for each observation, the first one of several.
  void act_greedily(std::span<const float> observations, Actions& out);

 private:
  std::size_t forward(std::span<const float> observations);

  PolicyShape shape_;
  std::vector<float> weights_;
  std::vector<float> units_;    // [units, n] of the layer that was computed last
  std::vector<float> scratch_;  // [units, n] of the layer that is computed
};

/// Returns tanh of each value, in place: a rational function, within 1e-6 of std::tanh, the same bits on every machine.
/// Source: the float tanh of Eigen (generic_fast_tanh_float).
void tanh_all(std::span<float> values) noexcept;

/// Returns continuous actions as the environment takes them: -1 is the lower bound, 1 the upper. A part without finite
/// bounds stays as it is.
/// @param actions  [n, action_size]
void to_bounds(const rl::EnvironmentSpec& spec, std::span<const float> actions, std::vector<float>& out);

}  // namespace caftan::agents
