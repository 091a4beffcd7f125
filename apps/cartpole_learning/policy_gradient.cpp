#include "cartpole_learning/policy_gradient.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cartpole_learning/report_text.hpp"

namespace caftan::cartpole {
namespace {

/// While an object of this class lives, the calling thread uses one intra-op thread.
class OneThread {
 public:
  explicit OneThread(bool active) : before_(active ? at::get_num_threads() : 1) {
    if (before_ > 1) at::set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) at::set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// The episodes one after the other: states [T, 4], masks [T, hidden], actions [T, 1].
struct StepTensors {
  at::Tensor states;
  at::Tensor masks;
  at::Tensor actions;
};

void unpack_masks(const EpisodeRecord& episode, const Policy& policy, float* out) {
  const std::size_t hidden = policy.hidden();
  const float values[2] = {0.0F, policy.kept_scale()};
  const std::uint64_t* words = episode.kept.data();
  for (std::size_t step = 0; step < episode.trajectory.actions.size();
       ++step, words += policy.mask_words(), out += hidden) {
    for (std::size_t j = 0; j < hidden; ++j) out[j] = values[(words[j / 64] >> (j % 64)) & 1];
  }
}

StepTensors make_tensors(std::span<const EpisodeRecord> episodes, std::int64_t steps, const Policy& policy) {
  const auto hidden = static_cast<std::int64_t>(policy.hidden());
  StepTensors tensors{at::empty({steps, static_cast<std::int64_t>(kObservationSize)}, at::kFloat),
                      at::empty({steps, hidden}, at::kFloat), at::empty({steps, 1}, at::kLong)};
  float* states = tensors.states.mutable_data_ptr<float>();
  float* masks = tensors.masks.mutable_data_ptr<float>();
  std::int64_t* actions = tensors.actions.mutable_data_ptr<std::int64_t>();
  for (const EpisodeRecord& episode : episodes) {
    states = std::ranges::copy(episode.trajectory.observations, states).out;
    actions = std::ranges::copy(episode.trajectory.actions, actions).out;
    unpack_masks(episode, policy, masks);
    masks += episode.trajectory.actions.size() * policy.hidden();
  }
  return tensors;
}

bool is_complete(const EpisodeRecord& episode, const Policy& policy) {
  const rl::Trajectory& trajectory = episode.trajectory;
  const std::size_t steps = trajectory.actions.size();
  return steps > 0 && trajectory.observations.size() == steps * kObservationSize &&
         episode.kept.size() == steps * policy.mask_words() && std::ranges::all_of(trajectory.actions, [](int action) {
           return action >= 0 && action < static_cast<int>(kActions);
         });
}

}  // namespace

Error incomplete_episode(std::size_t observer) {
  return {Errc::bad_arguments,
          "the episode of observer " + std::to_string(observer) + " is empty or its arrays do not fit"};
}

PolicyGradient::PolicyGradient(Policy& policy, PolicyGradientOptions options)
    : policy_(policy), options_(options), optimizer_(policy.parameters(), options.learning_rate) {}

Result<double> PolicyGradient::step(std::span<const EpisodeRecord> episodes, std::span<const double> weights) {
  if (episodes.empty()) return Error(Errc::bad_arguments, "no episode to learn from");
  std::size_t steps = 0;
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    if (!is_complete(episodes[i], policy_)) return incomplete_episode(i);
    steps += episodes[i].trajectory.actions.size();
  }
  if (weights.size() != steps) {
    return Error(Errc::bad_arguments, std::to_string(weights.size()) + " weights for " + std::to_string(steps) +
                                          " actions: one is needed for each");
  }
  const OneThread one_thread(options_.one_thread);
  const auto rows = static_cast<std::int64_t>(steps);
  const StepTensors tensors = make_tensors(episodes, rows, policy_);
  at::Tensor weighted = at::empty({rows, 1}, at::kFloat);
  std::ranges::transform(weights, weighted.mutable_data_ptr<float>(),
                         [](double value) { return static_cast<float>(value); });

  const c10::AutoGradMode record(true);
  const at::Tensor chosen = policy_.log_probabilities(tensors.states, tensors.masks).gather(1, tensors.actions);
  const at::Tensor loss = chosen.mul(weighted).sum().neg();
  const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, policy_.parameters());
  optimizer_.step(gradients);
  const auto value = loss.item<double>();
  if (!std::isfinite(value)) return Error(Errc::invalid_config, diverged_text(value, options_.learning_rate));
  return value;
}

}  // namespace caftan::cartpole
