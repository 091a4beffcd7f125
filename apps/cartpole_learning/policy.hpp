/// The agent's policy: Linear 4 -> hidden, dropout, ReLU, Linear hidden -> 2, softmax. One state is answered by
/// hand-written float code (a torch call costs more than the arithmetic), and several states by one pass over the
/// weights; a whole episode is evaluated again in one batch, with autograd, when the agent learns. Start with
/// `sample_action`.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/random.hpp"
#include "fingerprint/fingerprint.hpp"

namespace caftan::cartpole {

inline constexpr std::size_t kObservationSize = 4;
inline constexpr std::size_t kActions = 2;

/// Cart position (m), cart velocity (m/s), pole angle (rad), pole angular velocity (rad/s).
using State = std::array<float, kObservationSize>;

/// Threads: one at a time.
/// Source: the Policy of PyTorch's RPC tutorial, with torch.nn.Linear's default initialisation.
class Policy {
 public:
  /// @param hidden   units, >= 1
  /// @param dropout  probability of dropping a hidden unit in `sample_action`, 0..<1
  /// @param random   where the initial parameters come from
  Policy(std::size_t hidden, double dropout, rl::Pcg64& random);
  Policy(Policy&&) = default;  // moved only: a copy would share its tensors (use `snapshot` and `load`)
  Policy& operator=(Policy&&) = default;

  std::size_t hidden() const noexcept { return hidden_; }
  /// Returns how many 64-bit words hold one step's dropout mask.
  std::size_t mask_words() const noexcept { return (hidden_ + 63) / 64; }
  /// Returns the factor of the units that were kept: 1 / (1 - dropout).
  float kept_scale() const noexcept { return scale_; }

  /// Draws a dropout mask and then an action, always in this order, from `random`.
  /// @param kept  [mask_words()]: bit j % 64 of word j / 64 is set if unit j was kept; bits beyond `hidden` are 0
  /// @return 0 or 1
  int sample_action(const State& state, rl::Pcg64& random, std::span<std::uint64_t> kept) const;

  /// One of several states that are answered together.
  struct Row {
    State state{};
    rl::Pcg64* random = nullptr;      ///< its stream; not null
    std::span<std::uint64_t> kept{};  ///< [mask_words()]: gets its mask, as in `sample_action`
  };
  /// As sample_action for each row, in this order and with the same bits: one pass over the weights for all rows.
  /// @return an action for each row
  std::vector<int> sample_actions(std::span<const Row> rows) const;

  /// Returns the more probable action without dropout; 0 if both are equal.
  int greedy_action(const State& state) const;

  /// Returns log-probabilities [T, 2], float32, recorded by autograd if grad mode is on.
  /// @param states  [T, 4], float32
  /// @param masks   [T, hidden], float32: 0 where a unit was dropped, else kept_scale()
  at::Tensor log_probabilities(const at::Tensor& states, const at::Tensor& masks) const;

  /// Returns weight [hidden, 4], bias [hidden], weight [2, hidden], bias [2]: float32 leaves that require gradients.
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

  /// Returns a copy of all parameters in the order of `parameters()`, one after the other, [P], float32.
  at::Tensor snapshot() const;
  /// Takes the parameters of a snapshot of a policy of equal size.
  /// Errors: bad_arguments (not float32 on the CPU, or of another size); nothing has changed then.
  Result<void> load(const at::Tensor& snapshot);

 private:
  void draw_mask(rl::Pcg64& random, std::span<std::uint64_t> kept) const;
  /// Returns the difference of the two logits, action 1 minus action 0. @param kept  empty = all units, unscaled
  float logit_difference(const State& state, std::span<const std::uint64_t> kept) const;
  /// Rows whose arithmetic goes on side by side, in the lanes of vector registers.
  static constexpr std::size_t kLanes = 8;
  /// Returns the difference of the logits for kLanes rows at most. @param rows  not empty
  std::array<float, kLanes> logit_differences(std::span<const Row> rows) const;

  std::size_t hidden_;
  float scale_;
  std::uint64_t keep_below_;  ///< a unit is kept if its 32 random bits are below this
  std::vector<at::Tensor> parameters_;
};

/// Adds the policy's parameters, bit for bit.
void add_parameters(const Policy& policy, Fingerprint& to);

}  // namespace caftan::cartpole
