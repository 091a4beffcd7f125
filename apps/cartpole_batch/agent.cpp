#include "cartpole_batch/agent.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "batch_settings/batch_limits.hpp"
#include "caftan/app/place.hpp"
#include "caftan/base/peer_loss.hpp"
#include "caftan/caftan.hpp"
#include "cartpole_batch/observer.hpp"
#include "cartpole_learning/report_text.hpp"

namespace caftan::cartpole_batch {

std::vector<app::MissingRequirement> Agent::requirements(const Config& config, const app::RolePlace& place) {
  return batch_settings::find_missing(config.batch, app::count_used(place, "observers"));
}

Agent::Agent(RoleContext& context, Config config)
    : context_(context),
      config_(config),
      observers_(context.uses<Observer>("observers")),
      is_lost_(observers_.size(), false),
      training_({.config = config,
                 .observers = observers_.size(),
                 .seed = context.seed("training"),
                 .deterministic = context.deterministic()}) {}

Result<void> Agent::run(std::stop_token stop) {
  started_ = clock_.now();
  while (!training_.is_over()) {
    if (stop.stop_requested()) {
      return Error(Errc::cancelled, "stopped after " + std::to_string(training_.episode()) + " episodes");
    }
    if (auto played = play_episode(); !played) return played;
  }
  context_.report(played_line(standing(0)));
  const std::string fingerprint = training_.fingerprint();
  context_.fingerprint(fingerprint);
  context_.report(cartpole::fingerprint_line(fingerprint, context_.deterministic()));
  return {};
}

Result<void> Agent::play_episode() {
  training_.begin_episode();
  const auto plays = play();
  if (!plays) return plays.error();
  const auto outcome = training_.end_episode(*plays);
  if (!outcome) return outcome.error();
  show(*outcome, *plays);
  return {};
}

/// Lets all observers that are left play at once. Returns what each gave; nothing of one that is lost.
Result<std::vector<std::optional<Play>>> Agent::play() {
  const RRef<Agent> self = context_.self<Agent>();
  std::vector<std::size_t> asked;  // observers
  std::vector<Future<Play>> playing;
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    if (is_lost_[i]) continue;
    const PlayOrder order{.observer = i,
                          .episode = training_.episode(),
                          .steps = config_.steps_per_call,
                          .gamma = config_.gamma,
                          .shared_seed = context_.seed("environment"),
                          .batched = config_.batch.enabled};
    // The calls of the steps have time-outs of their own; the whole call has none.
    const auto patient = observers_[i].with({.timeout = base::Duration(0)});
    asked.push_back(i);
    playing.push_back(patient.rpc_async<&Observer::play>(self, order));
  }
  std::vector<std::optional<Play>> plays(observers_.size());
  std::optional<Error> failed;
  while (!playing.empty()) {
    // Batches follow the observers that are left, as these end.
    if (auto limited = limit_batches(playing.size()); !limited && !failed) failed = limited.error();
    const auto ended = wait_any(playing);
    auto played = std::move(playing[*ended]).result();
    const std::size_t observer = asked[*ended];
    asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(*ended));
    playing.erase(playing.begin() + static_cast<std::ptrdiff_t>(*ended));
    if (played) {
      plays[observer] = *std::move(played);
    } else if (auto lost = lose(observer, played.error()); !lost && !failed) {
      failed = lost.error();
    }
  }
  if (failed) return *failed;
  return plays;
}

/// An observer's call has failed. Returns the error if the training cannot go on.
Result<void> Agent::lose(std::size_t observer, const Error& error) {
  if (!is_loss_of_peer(error) || !context_.goes_on_without("observers")) return error;
  is_lost_[observer] = true;
  context_.log("observer " + std::to_string(observer) + " is lost: " + error.text());
  const bool none_is_left = std::ranges::all_of(is_lost_, [](bool lost) { return lost; });
  return none_is_left ? Result<void>(error) : Result<void>();
}

/// No batch waits for more requests than there are observers that play, each of which has one at a time.
Result<void> Agent::limit_batches(std::size_t playing) const {
  if (!config_.batch.enabled || playing == 0) return {};
  return context_.set_max_batch_size<&Agent::select_actions>(
      batch_settings::limits_of(config_.batch, playing).max_size);
}

Standing Agent::standing(double mean_reward) const {
  const auto left = std::ranges::count(is_lost_, false);
  return {.episode = training_.episode(),
          .episodes = config_.episodes,
          .mean_reward = mean_reward,
          .running_reward = training_.running_reward(),
          .env_steps = training_.env_steps(),
          .sub_episodes = sub_episodes_,
          .seconds = std::chrono::duration<double>(clock_.now() - started_).count(),
          .mean_batch_size = batches_ == 0 ? 0 : static_cast<double>(requests_) / static_cast<double>(batches_),
          .observers = static_cast<std::size_t>(left)};
}

void Agent::show(const Outcome& outcome, const std::vector<std::optional<Play>>& plays) {
  for (const auto& play : plays) {
    if (!play) continue;
    for (const double reward : play->rewards) {
      context_.metric("sub_episode_reward", reward, {.step = ++sub_episodes_});
    }
  }
  const MetricOptions curve{.step = training_.episode()};
  const Standing now = standing(outcome.mean_reward);
  context_.metric("mean_reward", outcome.mean_reward, curve);
  context_.metric("running_reward", outcome.running_reward, curve);
  context_.metric("loss", outcome.loss, curve);
  context_.metric("env_steps", static_cast<double>(training_.env_steps()));
  context_.metric("env_steps_per_s", static_cast<double>(training_.env_steps()) / now.seconds);
  if (batches_ > 0) context_.metric("mean_batch_size", now.mean_batch_size);
  context_.progress(training_.episode(), config_.episodes, episode_line(now));
}

Result<int> Agent::select_action(std::uint64_t observer, cartpole::State state) {
  return training_.select_action(observer, state);
}

std::vector<Result<int>> Agent::select_actions(const Batch<std::uint64_t, cartpole::State>& requests) {
  ++batches_;
  requests_ += static_cast<std::int64_t>(requests.size());
  return training_.select_actions(requests.requests());
}

}  // namespace caftan::cartpole_batch
