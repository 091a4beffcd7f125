#include "cartpole_learning/policy.hpp"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace caftan::cartpole {
namespace {

/// Returns a leaf whose values are uniform in +-1 / sqrt(fan_in): what kaiming_uniform with a = sqrt(5) comes to for a
/// weight, and torch.nn.Linear's rule for a bias.
at::Tensor make_parameter(at::IntArrayRef sizes, std::size_t fan_in, rl::Pcg64& random) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  at::Tensor parameter = at::empty(sizes, at::kFloat);
  float* values = parameter.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < parameter.numel(); ++i) values[i] = static_cast<float>(random.uniform(-bound, bound));
  return parameter.requires_grad_();
}

/// Returns the action on which `uniform` (0..<1) falls. @param difference  of the logits, action 1 minus action 0
int action_of(double uniform, float difference) {
  const double probability_of_0 = 1.0 / (1.0 + std::exp(static_cast<double>(difference)));
  return uniform < probability_of_0 ? 0 : 1;
}

}  // namespace

Policy::Policy(std::size_t hidden, double dropout, rl::Pcg64& random)
    : hidden_(hidden),
      scale_(static_cast<float>(1.0 / (1.0 - dropout))),
      keep_below_(static_cast<std::uint64_t>(std::llround((1.0 - dropout) * 0x1p32))) {
  const auto units = static_cast<std::int64_t>(hidden);
  constexpr auto kInputs = static_cast<std::int64_t>(kObservationSize);
  constexpr auto kOutputs = static_cast<std::int64_t>(kActions);
  parameters_ = {make_parameter({units, kInputs}, kObservationSize, random),
                 make_parameter({units}, kObservationSize, random), make_parameter({kOutputs, units}, hidden, random),
                 make_parameter({kOutputs}, hidden, random)};
}

void Policy::draw_mask(rl::Pcg64& random, std::span<std::uint64_t> kept) const {
  for (std::size_t word = 0; word < kept.size(); ++word) {
    const std::size_t units = std::min<std::size_t>(64, hidden_ - 64 * word);
    std::uint64_t bits = 0;
    for (std::size_t unit = 0; unit < units; unit += 2) {
      const std::uint64_t draw = random();  // each 32 bits of a draw decide about one unit, the low half first
      bits |= std::uint64_t{(draw & 0xffffffffU) < keep_below_} << unit;
      if (unit + 1 < units) bits |= std::uint64_t{(draw >> 32) < keep_below_} << (unit + 1);
    }
    kept[word] = bits;
  }
}

float Policy::logit_difference(const State& state, std::span<const std::uint64_t> kept) const {
  const float* weight1 = parameters_[0].const_data_ptr<float>();
  const float* bias1 = parameters_[1].const_data_ptr<float>();
  const float* weight2 = parameters_[2].const_data_ptr<float>();
  const float* bias2 = parameters_[3].const_data_ptr<float>();
  const float scale = kept.empty() ? 1.0F : scale_;
  float logits[kActions] = {bias2[0], bias2[1]};
  for (std::size_t j = 0; j < hidden_; ++j) {
    if (!kept.empty() && ((kept[j / 64] >> (j % 64)) & 1) == 0) continue;
    const float* row = weight1 + j * kObservationSize;
    const float sum = bias1[j] + row[0] * state[0] + row[1] * state[1] + row[2] * state[2] + row[3] * state[3];
    const float unit = std::max(sum * scale, 0.0F);
    logits[0] += weight2[j] * unit;
    logits[1] += weight2[hidden_ + j] * unit;
  }
  return logits[1] - logits[0];
}

std::array<float, Policy::kLanes> Policy::logit_differences(std::span<const Row> rows) const {
  const float* weight1 = parameters_[0].const_data_ptr<float>();
  const float* bias1 = parameters_[1].const_data_ptr<float>();
  const float* weight2 = parameters_[2].const_data_ptr<float>();
  const float* bias2 = parameters_[3].const_data_ptr<float>();
  using Lanes = std::array<float, kLanes>;
  std::array<Lanes, kObservationSize> states{};
  Lanes logits0;
  Lanes logits1;
  logits0.fill(bias2[0]);
  logits1.fill(bias2[1]);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < kObservationSize; ++i) states[i][row] = rows[row].state[i];
  }
  std::array<std::int32_t, kLanes> kept{};  // of 32 units; the next unit in the lowest bit
  for (std::size_t j = 0; j < hidden_; ++j) {
    if (j % 32 == 0) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        kept[row] = static_cast<std::int32_t>(rows[row].kept[j / 64] >> (j % 64));
      }
    }
    const float* row = weight1 + j * kObservationSize;
    // The operations of each lane are those of logit_difference in their order. A dropped unit adds a zero there.
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float sum = bias1[j] + row[0] * states[0][lane] + row[1] * states[1][lane] + row[2] * states[2][lane] +
                        row[3] * states[3][lane];
      const float unit = std::max(sum * scale_, 0.0F) * static_cast<float>(kept[lane] & 1);
      kept[lane] >>= 1;
      logits0[lane] += weight2[j] * unit;
      logits1[lane] += weight2[hidden_ + j] * unit;
    }
  }
  Lanes differences;
  for (std::size_t lane = 0; lane < kLanes; ++lane) differences[lane] = logits1[lane] - logits0[lane];
  return differences;
}

int Policy::sample_action(const State& state, rl::Pcg64& random, std::span<std::uint64_t> kept) const {
  draw_mask(random, kept);
  return action_of(random.uniform(), logit_difference(state, kept));
}

std::vector<int> Policy::sample_actions(std::span<const Row> rows) const {
  std::vector<double> draws;
  for (const Row& row : rows) {  // the order of draws from a stream that several rows share
    draw_mask(*row.random, row.kept);
    draws.push_back(row.random->uniform());
  }
  std::vector<int> actions;
  for (std::size_t first = 0; first < rows.size(); first += kLanes) {
    const auto some = rows.subspan(first, std::min(kLanes, rows.size() - first));
    const auto differences = logit_differences(some);
    for (std::size_t i = 0; i < some.size(); ++i) actions.push_back(action_of(draws[first + i], differences[i]));
  }
  return actions;
}

int Policy::greedy_action(const State& state) const { return logit_difference(state, {}) > 0 ? 1 : 0; }

at::Tensor Policy::log_probabilities(const at::Tensor& states, const at::Tensor& masks) const {
  const at::Tensor units = at::addmm(parameters_[1], states, parameters_[0].t()).mul(masks).relu();
  return at::log_softmax(at::addmm(parameters_[3], units, parameters_[2].t()), 1);
}

at::Tensor Policy::snapshot() const {
  std::int64_t size = 0;
  for (const at::Tensor& parameter : parameters_) size += parameter.numel();
  at::Tensor flat = at::empty({size}, at::kFloat);
  float* out = flat.mutable_data_ptr<float>();
  for (const at::Tensor& parameter : parameters_) {
    out = std::copy_n(parameter.const_data_ptr<float>(), parameter.numel(), out);
  }
  return flat;
}

Result<void> Policy::load(const at::Tensor& snapshot) {
  std::int64_t size = 0;
  for (const at::Tensor& parameter : parameters_) size += parameter.numel();
  if (!snapshot.defined() || snapshot.scalar_type() != at::kFloat || !snapshot.is_cpu() || snapshot.dim() != 1 ||
      snapshot.numel() != size) {
    return Error(Errc::bad_arguments, "a policy of " + std::to_string(hidden_) + " hidden units has " +
                                          std::to_string(size) + " parameters, float32 on the CPU in one row");
  }
  const at::Tensor flat = snapshot.contiguous();
  const float* in = flat.const_data_ptr<float>();
  for (at::Tensor& parameter : parameters_) {
    std::copy_n(in, parameter.numel(), parameter.mutable_data_ptr<float>());
    // Autograd does not see a write through a raw pointer, so the version is raised by hand.
    parameter.unsafeGetTensorImpl()->bump_version();
    in += parameter.numel();
  }
  return {};
}

void add_parameters(const Policy& policy, Fingerprint& to) {
  for (const at::Tensor& parameter : policy.parameters()) {
    to.add(std::span(parameter.const_data_ptr<float>(), static_cast<std::size_t>(parameter.numel())));
  }
}

}  // namespace caftan::cartpole
