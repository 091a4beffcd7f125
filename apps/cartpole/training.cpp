#include "training.hpp"

#include <string>
#include <utility>

namespace caftan::cartpole {
namespace {

/// What a stream of random numbers is for; the second part of the stream's key.
enum class Purpose : std::uint64_t { parameters = 0, actions = 1, evaluation = 2 };

LearnerOptions make_learner_options(const TrainingOptions& options) {
  const bool joined = options.config.returns == AgentConfig::Returns::joined;
  return {.gamma = options.config.gamma,
          .learning_rate = options.config.learning_rate,
          .returns = joined ? rl::ReturnScope::joined : rl::ReturnScope::per_observer,
          .running_average = options.config.running_average,
          .one_thread = options.deterministic};
}

Policy make_policy(const TrainingOptions& options) {
  rl::Pcg64 random = rl::make_stream({options.seed, static_cast<std::uint64_t>(Purpose::parameters)});
  return {static_cast<std::size_t>(options.config.hidden), options.config.dropout, random};
}

Error no_observer(std::size_t observer, std::size_t count) {
  return {Errc::bad_arguments, "no observer " + std::to_string(observer) + ", this agent has " + std::to_string(count)};
}

Error out_of_turn(std::size_t observer, const char* what) {
  return {Errc::bad_arguments, "observer " + std::to_string(observer) + ": " + what};
}

}  // namespace

Result<Training> Training::make(const TrainingOptions& options) {
  if (options.config.steps_per_episode < static_cast<std::int64_t>(options.observers)) {
    return Error(Errc::invalid_config, "steps_per_episode = " + std::to_string(options.config.steps_per_episode) +
                                           " leaves no step for each of " + std::to_string(options.observers) +
                                           " observers");
  }
  return Training(options);
}

Training::Training(const TrainingOptions& options)
    : options_(options),
      policy_(std::make_unique<Policy>(make_policy(options))),
      learner_(std::make_unique<Learner>(*policy_, make_learner_options(options))),
      records_(options.observers),
      history_(std::make_unique<Fingerprint>()) {}

std::int64_t Training::step_budget() const noexcept {
  return options_.config.steps_per_episode / static_cast<std::int64_t>(options_.observers);
}

std::uint64_t Training::stream_seed(std::size_t observer) const {
  return rl::derive_seed(
      {options_.seed, static_cast<std::uint64_t>(Purpose::actions), observer, static_cast<std::uint64_t>(episode_)});
}

std::uint64_t Training::evaluation_seed() const {
  return rl::derive_seed({options_.seed, static_cast<std::uint64_t>(Purpose::evaluation)});
}

void Training::begin_episode() {
  ++episode_;
  playing_ = true;
  streams_.clear();
  for (std::size_t observer = 0; observer < records_.size(); ++observer) {
    records_[observer].trajectory.clear();
    records_[observer].kept.clear();
    streams_.emplace_back(stream_seed(observer));
  }
}

Result<int> Training::select_action(std::size_t observer, const State& state) {
  if (observer >= records_.size()) return no_observer(observer, records_.size());
  if (!playing_) return out_of_turn(observer, "no episode is in progress");
  EpisodeRecord& record = records_[observer];
  if (record.trajectory.actions.size() != record.trajectory.steps()) {
    return out_of_turn(observer, "the reward of the last action is missing");
  }
  if (steps_of(observer) >= step_budget()) return out_of_turn(observer, "its steps for this episode are used up");
  const int action = choose_action(*policy_, state, streams_[observer], record);
  record.random = streams_[observer].state();
  return action;
}

Result<void> Training::report_reward(std::size_t observer, double reward) {
  if (observer >= records_.size()) return no_observer(observer, records_.size());
  rl::Trajectory& trajectory = records_[observer].trajectory;
  if (trajectory.actions.size() == trajectory.steps()) return out_of_turn(observer, "a reward without an action");
  trajectory.append_reward(reward);
  return {};
}

Result<void> Training::accept(std::size_t observer, EpisodeRecord record) {
  if (observer >= records_.size()) return no_observer(observer, records_.size());
  if (!playing_) return out_of_turn(observer, "no episode is in progress");
  if (!records_[observer].trajectory.actions.empty()) return out_of_turn(observer, "two episodes at once");
  records_[observer] = std::move(record);
  return {};
}

std::int64_t Training::steps_of(std::size_t observer) const noexcept {
  return static_cast<std::int64_t>(records_[observer].trajectory.steps());
}

double Training::reward_of(std::size_t observer) const noexcept { return records_[observer].trajectory.total_reward(); }

Result<EpisodeOutcome> Training::end_episode() {
  if (!playing_) return Error(Errc::bad_arguments, "no episode is in progress");
  playing_ = false;
  auto outcome = learner_->learn(records_);
  if (!outcome) return outcome;
  env_steps_ += outcome->steps;
  for (std::size_t observer = 0; observer < records_.size(); ++observer) {
    history_->add(static_cast<std::uint64_t>(episode_));
    history_->add(static_cast<std::uint64_t>(steps_of(observer)));
    history_->add(reward_of(observer));
    for (const std::uint64_t word : records_[observer].random) history_->add(word);
  }
  return outcome;
}

std::string Training::fingerprint() const {
  Fingerprint whole(*history_);
  add_parameters(*policy_, whole);
  return whole.text();
}

}  // namespace caftan::cartpole
