#include "actor_critic/learning.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/min.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "caftan/base/ids.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/optim/clipping.hpp"
#include "caftan/rl/random.hpp"
#include "caftan/rl/vtrace.hpp"
#include "fingerprint/fingerprint.hpp"

namespace caftan::actor_critic {
namespace {

/// What a stream of random numbers is for; a part of its key.
enum class Purpose : std::uint64_t { parameters = 0, minibatches = 1 };

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

optim::Algorithm algorithm_of(const OptimizerConfig& config) {
  if (config.name == OptimizerConfig::Name::rmsprop) return optim::RMSprop{.lr = config.lr, .eps = 1e-5};
  return optim::Adam{.lr = config.lr, .eps = 1e-5};
}

std::span<const float> values_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

/// Copies observations as networks see them. @param weights  as RunningScale::weights
float* normalized(std::span<const float> observations, std::span<const float> weights, float* to) {
  const std::size_t size = weights.size() / 2;
  for (std::size_t at = 0; at < observations.size(); at += size) {
    for (std::size_t part = 0; part < size; ++part) {
      const float value = (observations[at + part] - weights[part]) * weights[size + part];
      *to++ = std::clamp(value, -agents::kObservationLimit, agents::kObservationLimit);
    }
  }
  return to;
}

at::Tensor of_vector(const std::vector<float>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
  std::ranges::copy(values, tensor.mutable_data_ptr<float>());
  return tensor;
}

}  // namespace

/// The steps of all trajectories as rows, one trajectory after the other.
struct Learning::Rows {
  at::Tensor observations;       ///< [rows, observation], normalized
  at::Tensor actions;            ///< [rows], or [rows, outputs] of continuous ones
  at::Tensor log_probabilities;  ///< [rows], of the policy that acted
  at::Tensor following;          ///< [rows of one more step, and of last observations; observation], normalized
  at::Tensor targets{};          ///< [rows]
  at::Tensor advantages{};       ///< [rows]
  double ratio = 0;              ///< mean
};

std::uint64_t evaluation_seed(std::uint64_t seed, std::uint64_t number) {
  constexpr unsigned kBitsOfEnvironments = 16;  // environment i has the seed plus i
  return rl::derive_seed({seed, number}) >> kBitsOfEnvironments;
}

double learning_rate_at(const OptimizerConfig& config, double share) noexcept {
  const double done = std::clamp(share, 0.0, 1.0);
  switch (config.schedule) {
    case OptimizerConfig::Schedule::linear:
      return config.lr * (1 - done);
    case OptimizerConfig::Schedule::cosine:
      return config.lr * (1 + std::cos(std::numbers::pi * done)) / 2;
    case OptimizerConfig::Schedule::constant:
      break;
  }
  return config.lr;
}

Result<Learning> Learning::make(const LearningOptions& options) {
  Learning learning(options);
  auto optimizer =
      optim::LocalOptimizer::make({{learning.model_->parameters(), algorithm_of(options.config.optimizer)}});
  if (!optimizer) return optimizer.error();
  learning.optimizer_ = std::make_unique<optim::LocalOptimizer>(*std::move(optimizer));
  return Result<Learning>(std::move(learning));
}

Learning::Learning(const LearningOptions& options)
    : options_(options),
      model_(std::make_unique<Model>(options.shape,
                                     rl::derive_seed({options.seed, static_cast<std::uint64_t>(Purpose::parameters)}))),
      state_{.scale = RunningScale::of(options.shape.observation)} {}

std::vector<float> Learning::weights() const {
  std::vector<float> weights = state_.scale.weights();
  model_->append_policy(weights);
  return weights;
}

Result<Learning::Rows> Learning::make_rows(const std::vector<Trajectories>& trajectories) const {
  const agents::PolicyShape& shape = options_.shape;
  std::size_t rows = 0;
  std::size_t following = 0;
  for (const Trajectories& one : trajectories) {
    if (auto fits = check_trajectories(one, shape); !fits) return fits.error();
    rows += one.rewards.size();
    following += one.environments + one.last_observations.size() / shape.observation;
  }
  if (rows == 0) return Error(Errc::bad_arguments, "no trajectory to learn from");
  const auto size = static_cast<std::int64_t>(shape.observation);
  const auto count = static_cast<std::int64_t>(rows);
  Rows made{.observations = at::empty({count, size}, at::kFloat),
            .actions = shape.continuous ? at::empty({count, static_cast<std::int64_t>(shape.outputs)}, at::kFloat)
                                        : at::empty({count}, at::kLong),
            .log_probabilities = at::empty({count}, at::kFloat),
            .following = at::empty({static_cast<std::int64_t>(following), size}, at::kFloat)};
  const std::vector<float> weights = state_.scale.weights();
  float* observations = made.observations.mutable_data_ptr<float>();
  float* log_probabilities = made.log_probabilities.mutable_data_ptr<float>();
  float* last = made.following.mutable_data_ptr<float>();
  std::size_t row = 0;
  for (const Trajectories& one : trajectories) {
    const std::span<const float> all(one.observations);
    const std::size_t end = one.rewards.size() * shape.observation;
    observations = normalized(all.first(end), weights, observations);
    last = normalized(all.subspan(end), weights, last);
    last = normalized(one.last_observations, weights, last);
    log_probabilities = std::ranges::copy(one.log_probabilities, log_probabilities).out;
    if (shape.continuous) {
      std::ranges::copy(one.continuous_actions, made.actions.mutable_data_ptr<float>() + row * shape.outputs);
    } else {
      std::ranges::copy(one.actions, made.actions.mutable_data_ptr<std::int64_t>() + row);
    }
    row += one.rewards.size();
  }
  return made;
}

/// Computes targets and advantages of all rows with the networks as they are.
Result<void> Learning::add_targets(const std::vector<Trajectories>& trajectories, Rows& rows) const {
  const at::NoGradGuard no_grad;
  const LossConfig& config = options_.config.loss;
  const at::Tensor log_ratios =
      model_->judge(rows.observations, rows.actions).log_probabilities.sub(rows.log_probabilities).contiguous();
  rows.ratio = log_ratios.exp().mean().item<double>();
  const at::Tensor values = model_->values(rows.observations).contiguous();
  const at::Tensor following = model_->values(rows.following).contiguous();
  std::span<const float> ratios_left = values_of(log_ratios);
  std::span<const float> values_left = values_of(values);
  std::span<const float> following_left = values_of(following);
  std::vector<float> targets;
  std::vector<float> advantages;
  for (const Trajectories& one : trajectories) {
    const std::size_t size = one.rewards.size();
    const std::size_t n = one.environments;
    const auto of_rows = values_left.first(size);
    const auto last = following_left.first(n);
    std::size_t truncated = n;  // of the values of `following` that were used
    std::vector<float> rewards(size);
    std::vector<float> next(size);
    for (std::size_t at = 0; at < size; ++at) {
      rewards[at] = static_cast<float>(config.reward_scale) * one.rewards[at];
      if (one.ends[at] == kTerminated) {
        next[at] = 0;
      } else if (one.ends[at] == kTruncated) {
        next[at] = following_left[truncated++];
      } else {
        next[at] = at + n < size ? of_rows[at + n] : last[at + n - size];
      }
    }
    auto made = rl::vtrace({.steps = one.steps,
                            .environments = n,
                            .log_ratios = ratios_left.first(size),
                            .rewards = rewards,
                            .values = of_rows,
                            .next_values = next,
                            .ends = one.ends},
                           {.discount = config.discount,
                            .lambda = config.lambda,
                            .ratio_limit = config.ratio_limit,
                            .trace_limit = config.trace_limit});
    if (!made) return made.error();
    if (config.policy == LossConfig::Policy::clipped) {
      // The weight of a step is in the loss; the advantage is the estimate of the whole trace.
      for (std::size_t at = 0; at < size; ++at) made->advantages[at] = made->values[at] - of_rows[at];
    }
    targets.insert(targets.end(), made->values.begin(), made->values.end());
    advantages.insert(advantages.end(), made->advantages.begin(), made->advantages.end());
    ratios_left = ratios_left.subspan(size);
    values_left = values_left.subspan(size);
    following_left = following_left.subspan(truncated);
  }
  rows.targets = of_vector(targets);
  rows.advantages = of_vector(advantages);
  return {};
}

Error Learning::diverged(const char* what, double value) const {
  return {Errc::invalid_config, "update " + std::to_string(state_.updates + 1) + ": the " + what + " is " +
                                    format_digits(value) + ", the training has diverged; its learning rate was " +
                                    format_digits(optimizer_->lr(0)) +
                                    ": start anew with a lower optimizer.lr or loss.reward_scale, or resume from a "
                                    "checkpoint"};
}

/// Takes a step of the optimizer. @param which  numbers of rows; undefined = all
Result<void> Learning::step(const Rows& rows, const at::Tensor& which, UpdateReport& report) {
  const LossConfig& config = options_.config.loss;
  const auto take = [&](const at::Tensor& all) { return which.defined() ? all.index_select(0, which) : all; };
  const at::Tensor observations = take(rows.observations);
  at::Tensor advantages = take(rows.advantages);
  if (config.normalize_advantages && advantages.numel() > 1) {
    advantages = advantages.sub(advantages.mean()).div(advantages.std().add(1e-8));
  }
  const c10::AutoGradMode record(true);
  const ActionFacts facts = model_->judge(observations, take(rows.actions));
  at::Tensor gain;
  if (config.policy == LossConfig::Policy::clipped) {
    const at::Tensor ratio = facts.log_probabilities.sub(take(rows.log_probabilities)).exp();
    gain = at::min(ratio.mul(advantages), ratio.clamp(1 - config.clip_ratio, 1 + config.clip_ratio).mul(advantages));
  } else {
    gain = facts.log_probabilities.mul(advantages);
  }
  const at::Tensor policy_loss = gain.mean().neg();
  const at::Tensor value_loss = model_->values(observations).sub(take(rows.targets)).square().mean().mul(0.5);
  const at::Tensor loss = policy_loss.add(value_loss, config.value_cost).sub(facts.entropy, config.entropy_cost);
  const auto value = loss.item<double>();
  if (!std::isfinite(value)) return diverged("loss", value);
  std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, model_->parameters());
  const double square = optim::squared_norm(gradients);
  if (!std::isfinite(square)) return diverged("norm of all gradients", std::sqrt(square));
  if (const double limit = options_.config.optimizer.clip; limit > 0) {
    gradients = optim::scaled(gradients, optim::clip_scale(square, limit));
  }
  if (auto stepped = optimizer_->step(gradients); !stepped) return stepped.error();
  const double share = 1.0 / static_cast<double>(options_.config.loss.epochs * options_.config.loss.minibatches);
  report.policy_loss += share * policy_loss.item<double>();
  report.value_loss += share * value_loss.item<double>();
  report.entropy += share * facts.entropy.item<double>();
  report.norm = std::sqrt(square);
  state_.history = mix64(state_.history ^ std::bit_cast<std::uint64_t>(value));
  return {};
}

Result<UpdateReport> Learning::update(const std::vector<Trajectories>& trajectories) {
  const OneThread one_thread(options_.deterministic);
  auto rows = make_rows(trajectories);
  if (!rows) return rows.error();
  if (auto added = add_targets(trajectories, *rows); !added) return added.error();
  const LearnerConfig& config = options_.config;
  UpdateReport report{.ratio = rows->ratio, .frames = rows->targets.numel()};
  optimizer_->set_lr(0, learning_rate_at(config.optimizer,
                                         static_cast<double>(state_.frames) / static_cast<double>(config.max_frames)));
  rl::Pcg64 random = rl::make_stream(
      {options_.seed, static_cast<std::uint64_t>(Purpose::minibatches), static_cast<std::uint64_t>(state_.updates)});
  const std::int64_t parts = std::min(config.loss.minibatches, report.frames);
  at::Tensor order = at::empty({report.frames}, at::kLong);
  auto* const numbers = order.mutable_data_ptr<std::int64_t>();
  std::iota(numbers, numbers + report.frames, 0);
  for (std::int64_t epoch = 0; epoch < config.loss.epochs; ++epoch) {
    for (std::int64_t at = report.frames - 1; parts > 1 && at > 0; --at) {
      std::swap(numbers[at], numbers[static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(at + 1))]);
    }
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = part * report.frames / parts;
      const at::Tensor which =
          parts == 1 ? at::Tensor() : order.narrow(0, begin, (part + 1) * report.frames / parts - begin);
      if (auto stepped = step(*rows, which, report); !stepped) return stepped.error();
    }
  }
  for (const Trajectories& one : trajectories) {
    report.lag += static_cast<double>(state_.updates - static_cast<std::int64_t>(one.version)) /
                  static_cast<double>(trajectories.size());
    for (const double value : one.returns) state_.history = mix64(state_.history ^ std::bit_cast<std::uint64_t>(value));
    if (!config.network.normalize) continue;
    state_.scale.add(std::span(one.observations).first(one.rewards.size() * options_.shape.observation));
  }
  state_.frames += report.frames;
  ++state_.updates;
  return report;
}

bool Learning::take_evaluation(std::int64_t frames, double mean) {
  state_.evaluated_at = frames;
  state_.evaluation = mean;
  state_.history = mix64(state_.history ^ std::bit_cast<std::uint64_t>(mean));
  if (mean <= state_.best) return false;
  state_.best = mean;
  return true;
}

Result<void> Learning::resume(const LearningState& state, const std::vector<at::Tensor>& parameters,
                              wire::ByteView optimizer) {
  const auto& mine = model_->parameters();
  const bool fits = parameters.size() == mine.size() && state.scale.mean.size() == options_.shape.observation &&
                    state.scale.squares.size() == options_.shape.observation &&
                    std::ranges::equal(parameters, mine, [](const at::Tensor& there, const at::Tensor& here) {
                      return there.sizes() == here.sizes() && there.scalar_type() == here.scalar_type();
                    });
  if (!fits) {
    return Error(Errc::bad_arguments, "its policy is for " + std::to_string(state.scale.mean.size()) +
                                          " observations, this one for " + std::to_string(options_.shape.observation) +
                                          " observations and " + std::to_string(options_.shape.outputs) +
                                          " actions: the environment's class has changed since; put it back, or leave "
                                          "resume out to start anew");
  }
  if (auto loaded = optimizer_->load(optimizer); !loaded) return loaded;
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i].copy_(parameters[i]);
  state_ = state;
  return {};
}

std::string Learning::fingerprint() const {
  Fingerprint digest;
  digest.add(static_cast<std::uint64_t>(state_.frames));
  digest.add(static_cast<std::uint64_t>(state_.updates));
  digest.add(state_.history);
  digest.add(weights());
  for (const at::Tensor& parameter : model_->parameters()) digest.add(values_of(parameter.contiguous()));
  return digest.text();
}

}  // namespace caftan::actor_critic
