#include "learner.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "progress_text.hpp"

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
struct Batch {
  at::Tensor states;
  at::Tensor masks;
  at::Tensor actions;
};

void unpack_masks(const EpisodeRecord& episode, const Policy& policy, float* out) {
  const std::size_t hidden = policy.hidden();
  const float values[2] = {0.0F, policy.kept_scale()};
  const std::uint64_t* words = episode.kept.data();
  for (std::size_t step = 0; step < episode.trajectory.steps(); ++step, words += policy.mask_words(), out += hidden) {
    for (std::size_t j = 0; j < hidden; ++j) out[j] = values[(words[j / 64] >> (j % 64)) & 1];
  }
}

Batch make_batch(std::span<const EpisodeRecord> episodes, std::int64_t steps, const Policy& policy) {
  const auto hidden = static_cast<std::int64_t>(policy.hidden());
  Batch batch{at::empty({steps, static_cast<std::int64_t>(kObservationSize)}, at::kFloat),
              at::empty({steps, hidden}, at::kFloat), at::empty({steps, 1}, at::kLong)};
  float* states = batch.states.mutable_data_ptr<float>();
  float* masks = batch.masks.mutable_data_ptr<float>();
  std::int64_t* actions = batch.actions.mutable_data_ptr<std::int64_t>();
  for (const EpisodeRecord& episode : episodes) {
    states = std::ranges::copy(episode.trajectory.observations, states).out;
    actions = std::ranges::copy(episode.trajectory.actions, actions).out;
    unpack_masks(episode, policy, masks);
    masks += episode.trajectory.steps() * policy.hidden();
  }
  return batch;
}

bool is_complete(const EpisodeRecord& episode, const Policy& policy) {
  const rl::Trajectory& trajectory = episode.trajectory;
  const std::size_t steps = trajectory.steps();
  return steps > 0 && trajectory.observations.size() == steps * kObservationSize &&
         trajectory.actions.size() == steps && episode.kept.size() == steps * policy.mask_words() &&
         std::ranges::all_of(trajectory.actions,
                             [](int action) { return action >= 0 && action < static_cast<int>(kActions); });
}

}  // namespace

Learner::Learner(Policy& policy, LearnerOptions options)
    : policy_(policy), options_(options), optimizer_(policy.parameters(), options.learning_rate) {}

Result<std::int64_t> Learner::count_steps(std::span<const EpisodeRecord> episodes) const {
  if (episodes.empty()) return Error(Errc::bad_arguments, "no episode to learn from");
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    if (!is_complete(episodes[i], policy_)) {
      return Error(Errc::bad_arguments,
                   "the episode of observer " + std::to_string(i) + " is empty or its arrays do not fit");
    }
    steps += static_cast<std::int64_t>(episodes[i].trajectory.steps());
  }
  return steps;
}

std::vector<double> Learner::normalized_returns(std::span<const EpisodeRecord> episodes) const {
  std::vector<std::span<const double>> rewards;
  for (const EpisodeRecord& episode : episodes) rewards.emplace_back(episode.trajectory.rewards);
  std::vector<double> returns = rl::discounted_returns(rewards, options_.gamma, options_.returns);
  rl::normalize(returns);
  return returns;
}

double Learner::take_step(std::span<const EpisodeRecord> episodes, std::int64_t steps) {
  const OneThread one_thread(options_.one_thread);
  const Batch batch = make_batch(episodes, steps, policy_);
  at::Tensor returns = at::empty({steps, 1}, at::kFloat);
  std::ranges::transform(normalized_returns(episodes), returns.mutable_data_ptr<float>(),
                         [](double value) { return static_cast<float>(value); });

  const c10::AutoGradMode record(true);
  const at::Tensor chosen = policy_.log_probabilities(batch.states, batch.masks).gather(1, batch.actions);
  const at::Tensor loss = chosen.mul(returns).sum().neg();
  const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, policy_.parameters());
  optimizer_.step(gradients);
  return loss.item<double>();
}

Result<EpisodeOutcome> Learner::learn(std::span<const EpisodeRecord> episodes) {
  const auto steps = count_steps(episodes);
  if (!steps) return steps.error();
  EpisodeOutcome outcome{.worst_reward = std::numeric_limits<double>::infinity(), .steps = *steps};
  for (const EpisodeRecord& episode : episodes) {
    const double reward = episode.trajectory.total_reward();
    outcome.worst_reward = std::min(outcome.worst_reward, reward);
    outcome.mean_reward += reward / static_cast<double>(episodes.size());
  }
  outcome.loss = take_step(episodes, *steps);
  if (!std::isfinite(outcome.loss)) {
    return Error(Errc::invalid_config, diverged_text(outcome.loss, options_.learning_rate));
  }
  running_reward_ = options_.running_average * outcome.worst_reward + (1 - options_.running_average) * running_reward_;
  outcome.running_reward = running_reward_;
  return outcome;
}

}  // namespace caftan::cartpole
