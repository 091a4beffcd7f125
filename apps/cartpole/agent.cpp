#include "agent.hpp"

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "agent_checkpoint.hpp"
#include "caftan/app/place.hpp"
#include "caftan/caftan.hpp"
#include "caftan/rl/environment.hpp"
#include "cartpole_learning/environment.hpp"
#include "goal.hpp"
#include "observer.hpp"

namespace caftan::cartpole {
namespace {

/// Waits for all futures and returns their values, or the first error in their order.
template <class T>
Result<std::vector<T>> collect(std::vector<Future<T>> futures) {
  std::vector<T> values;
  std::optional<Error> first;
  for (Future<T>& future : futures) {
    auto result = std::move(future).result();
    if (result) values.push_back(*std::move(result));
    if (!result && !first) first = result.error();
  }
  if (first) return *first;
  return values;
}

Error not_running() { return {Errc::bad_arguments, "the agent has not begun to train"}; }

}  // namespace

std::vector<app::MissingRequirement> Agent::requirements(const Config& config, const app::RolePlace& place) {
  std::vector<rl::EnvironmentSpec> environments;
  for (const ObserverConfig* const observer : app::used_configs<ObserverConfig>(place, "observers")) {
    const auto environment = rl::make_environment(environment_id(*observer));
    if (environment) environments.push_back((*environment)->spec());
  }
  if (environments.empty()) return {};
  auto found = find_unreachable_goal(config, environments);
  if (!found) return {};
  using Kind = app::MissingRequirement::Kind;
  using Reason = UnreachableGoal::Reason;
  return {{.keys = {found->reason == Reason::steps ? "steps_per_episode" : "solved_at"},
           .text = std::move(found->text),
           .kind = found->reason == Reason::environment ? Kind::doubt : Kind::file}};
}

Agent::Agent(RoleContext& context, Config config)
    : context_(context),
      config_(config),
      observers_(context.uses<Observer>("observers")),
      shared_seed_(context.seed("environment")) {}

Result<void> Agent::run(std::stop_token stop) {
  if (auto prepared = prepare(); !prepared) return prepared;
  while (!training_->is_solved() && !training_->is_exhausted()) {
    if (stop.stop_requested()) {
      return Error(Errc::cancelled, "stopped after " + with_commas(training_->episode()) + " episodes");
    }
    if (auto played = play_episode(); !played) return played;
  }
  return finish();
}

Result<void> Agent::prepare() {
  // Without solved_at the threshold of the first environment counts for all: `requirements` refuses environments whose
  // thresholds differ.
  const auto environment = observers_.front().try_rpc_sync<&Observer::environment>();
  if (!environment) return environment.error();
  environment_ = environment->id;
  const auto threshold = config_.solved_at ? config_.solved_at : environment->solved_at;
  if (!threshold) {
    return Error(Errc::invalid_config, environment->id + " has no threshold of its own: solved_at is required");
  }
  auto training = Training::make({.config = config_,
                                  .observers = observers_.size(),
                                  .seed = context_.seed("training"),
                                  .solved_at = *threshold,
                                  .deterministic = context_.deterministic()});
  if (!training) return training.error();
  training_.emplace(*std::move(training));
  started_ = clock_.now();
  return {};
}

Result<void> Agent::play_episode() {
  training_->begin_episode();
  const bool alone = config_.protocol == AgentConfig::Protocol::rollout;
  if (auto played = alone ? play_rollouts() : play_with_calls(); !played) return played;
  const auto outcome = training_->end_episode();
  if (!outcome) return outcome.error();
  show(*outcome);
  return {};
}

EpisodeOrder Agent::make_order(std::size_t observer) const {
  return {.observer = observer,
          .episode = training_->episode(),
          .budget = training_->step_budget(),
          .shared_seed = shared_seed_,
          .fused = config_.protocol == AgentConfig::Protocol::fused};
}

PolicyCopy Agent::copy_policy() const {
  return {.parameters = training_->policy().snapshot(), .hidden = config_.hidden, .dropout = config_.dropout};
}

Result<void> Agent::play_with_calls() {
  const RRef<Agent> self = context_.self<Agent>();
  std::vector<Future<EpisodeReport>> futures;
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    futures.push_back(observers_[i].rpc_async<&Observer::run_episode>(self, make_order(i)));
  }
  const auto reports = collect(std::move(futures));
  if (!reports) return reports.error();
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    if (auto taken = take_report(i, (*reports)[i]); !taken) return taken;
  }
  return {};
}

Result<void> Agent::take_report(std::size_t observer, const EpisodeReport& report) {
  if (config_.protocol == AgentConfig::Protocol::fused) {
    if (auto reported = training_->report_reward(observer, report.last_reward); !reported) return reported;
  }
  if (training_->steps_of(observer) != report.steps || training_->reward_of(observer) != report.reward) {
    return Error(Errc::bad_arguments, "observer " + std::to_string(observer) + " took " + std::to_string(report.steps) +
                                          " steps in episode " + std::to_string(training_->episode()) +
                                          ", the agent knows of " + std::to_string(training_->steps_of(observer)) +
                                          ", or rewards differ");
  }
  calls_ += report.calls + 1;  // the calls of the episode, and the call that started it
  if (observer == 0) call_p50_us_ = report.call_p50_us;
  return {};
}

Result<void> Agent::play_rollouts() {
  std::vector<Future<EpisodeRecord>> futures;
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    futures.push_back(
        observers_[i].rpc_async<&Observer::rollout>(make_order(i), copy_policy(), training_->stream_seed(i)));
  }
  auto records = collect(std::move(futures));
  if (!records) return records.error();
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    if (auto accepted = training_->accept(i, std::move((*records)[i])); !accepted) return accepted;
    ++calls_;
  }
  return {};
}

Standing Agent::standing() const {
  return {.episode = training_->episode(),
          .running_reward = training_->running_reward(),
          .solved_at = training_->solved_at(),
          .env_steps = training_->env_steps(),
          .calls = calls_,
          .seconds = std::chrono::duration<double>(clock_.now() - started_).count(),
          .call_p50_us = call_p50_us_,
          .observers = observers_.size()};
}

void Agent::show(const EpisodeOutcome& outcome) {
  const MetricOptions curve{.step = training_->episode()};
  context_.metric("running_reward", outcome.running_reward, curve);
  context_.metric("worst_reward", outcome.worst_reward, curve);
  context_.metric("mean_reward", outcome.mean_reward, curve);
  context_.metric("loss", outcome.loss, curve);
  const Standing now = standing();
  context_.metric("env_steps", static_cast<double>(now.env_steps));
  context_.metric("training_s", now.seconds);
  if (now.seconds > 0) context_.metric("env_steps_per_s", static_cast<double>(now.env_steps) / now.seconds);
  if (call_p50_us_ > 0) context_.metric("call_p50_us", call_p50_us_);
  // Cut, not rounded: a total whose digits the line has, as "of 195.5" has 195, is not shown a second time.
  const auto total = static_cast<std::int64_t>(training_->solved_at());
  context_.progress(std::llround(outcome.running_reward), total, episode_line(now));
}

/// Leaves the policy for `caftan play`, also that of a training which has missed its goal.
Result<void> Agent::write_checkpoint() {
  if (context_.output_directory().empty()) return {};
  const auto written =
      write_agent_checkpoint(context_.output_directory(), training_->policy(), environment_, training_->episode());
  if (!written) return written.error();
  context_.log("checkpoint: episode " + std::to_string(training_->episode()) + " in " + written->string());
  return {};
}

Result<void> Agent::finish() {
  const Standing end = standing();
  if (auto written = write_checkpoint(); !written) return written;
  if (!training_->is_solved()) return Error(Errc::goal_missed, exhausted_text(end));
  context_.report(solved_line(end));
  if (config_.evaluate > 0) {
    const auto rewards = observers_.front().try_rpc_sync<&Observer::evaluate>(
        copy_policy(), training_->evaluation_seed(), config_.evaluate);
    if (!rewards) return rewards.error();
    context_.report(evaluation_line(*rewards));
  }
  const std::string fingerprint = training_->fingerprint();
  context_.fingerprint(fingerprint);
  context_.report(fingerprint_line(fingerprint, context_.deterministic()));
  return {};
}

Result<int> Agent::select_action(std::uint64_t observer, State state) {
  if (!training_) return not_running();
  return training_->select_action(observer, state);
}

Result<void> Agent::report_reward(std::uint64_t observer, double reward) {
  if (!training_) return not_running();
  return training_->report_reward(observer, reward);
}

Result<int> Agent::step(std::uint64_t observer, State state, std::optional<double> last_reward) {
  if (last_reward) {
    if (auto reported = report_reward(observer, *last_reward); !reported) return reported.error();
  }
  return select_action(observer, state);
}

}  // namespace caftan::cartpole
