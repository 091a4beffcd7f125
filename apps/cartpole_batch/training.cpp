#include "cartpole_batch/training.hpp"

#include <algorithm>
#include <utility>

namespace caftan::cartpole_batch {
namespace {

/// What a stream of random numbers is for; the second part of the stream's key.
enum class Purpose : std::uint64_t { parameters = 0, actions = 1 };

std::unique_ptr<cartpole::Policy> make_policy(const TrainingOptions& options) {
  rl::Pcg64 random = rl::make_stream({options.seed, static_cast<std::uint64_t>(Purpose::parameters)});
  return std::make_unique<cartpole::Policy>(static_cast<std::size_t>(options.config.hidden), options.config.dropout,
                                            random);
}

Error out_of_turn(std::size_t observer, const std::string& what) {
  return {Errc::bad_arguments, "observer " + std::to_string(observer) + ": " + what};
}

}  // namespace

Training::Training(const TrainingOptions& options)
    : options_(options),
      policy_(make_policy(options)),
      gradient_(*policy_, {.learning_rate = options.config.learning_rate, .one_thread = options.deterministic}),
      records_(options.observers),
      history_(std::make_unique<Fingerprint>()) {}

void Training::begin_episode() {
  ++episode_;
  playing_ = true;
  streams_.clear();
  for (std::size_t observer = 0; observer < records_.size(); ++observer) {
    records_[observer] = {};
    streams_.push_back(rl::make_stream(
        {options_.seed, static_cast<std::uint64_t>(Purpose::actions), observer, static_cast<std::uint64_t>(episode_)}));
  }
}

/// Checks that an observer may have an action. @param asked_before  requests of its own that are to be answered first
Result<void> Training::check(std::size_t observer, std::size_t asked_before) const {
  if (observer >= records_.size()) {
    return out_of_turn(observer, "there is none, this agent has " + std::to_string(records_.size()));
  }
  if (!playing_) return out_of_turn(observer, "no episode is in progress");
  const std::size_t actions = records_[observer].trajectory.actions.size() + asked_before;
  if (static_cast<std::int64_t>(actions) >= options_.config.steps_per_call) {
    return out_of_turn(observer, "its steps of this episode are used up");
  }
  return {};
}

Result<int> Training::select_action(std::size_t observer, const cartpole::State& state) {
  if (auto checked = check(observer, 0); !checked) return checked.error();
  return cartpole::choose_action(*policy_, state, streams_[observer], records_[observer]);
}

std::vector<Result<int>> Training::select_actions(std::span<const Request> requests) {
  std::vector<Result<int>> results;
  std::vector<cartpole::Asked> asked;
  std::vector<std::size_t> places;  // of `asked` among the results
  results.reserve(requests.size());
  for (const auto& [observer, state] : requests) {
    const auto is_of_observer = [&, record = observer < records_.size() ? &records_[observer] : nullptr](
                                    const cartpole::Asked& one) { return one.record == record; };
    if (auto checked = check(observer, static_cast<std::size_t>(std::ranges::count_if(asked, is_of_observer)));
        !checked) {
      results.emplace_back(checked.error());
      continue;
    }
    places.push_back(results.size());
    asked.push_back({state, &streams_[observer], &records_[observer]});
    results.emplace_back(0);  // its place
  }
  const std::vector<int> actions = cartpole::choose_actions(*policy_, asked);
  for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = actions[i];
  return results;
}

/// Returns how many observers have played.
Result<std::size_t> Training::count_fitting(const std::vector<std::optional<Play>>& plays) const {
  if (plays.size() != records_.size()) {
    return Error(Errc::bad_arguments,
                 std::to_string(plays.size()) + " plays of " + std::to_string(records_.size()) + " observers");
  }
  std::size_t count = 0;
  for (std::size_t observer = 0; observer < plays.size(); ++observer) {
    if (!plays[observer]) continue;
    ++count;
    const std::size_t actions = records_[observer].trajectory.actions.size();
    if (plays[observer]->returns.size() == actions && !plays[observer]->rewards.empty()) continue;
    return out_of_turn(observer, std::to_string(plays[observer]->returns.size()) + " returns and " +
                                     std::to_string(plays[observer]->rewards.size()) + " sub-episodes for " +
                                     std::to_string(actions) + " actions: one return is needed for each action");
  }
  if (count == 0) return Error(Errc::bad_arguments, "no observer is left to learn from");
  return count;
}

void Training::remember(std::size_t observer, const Play& play) {
  history_->add(static_cast<std::uint64_t>(episode_));
  history_->add(static_cast<std::uint64_t>(observer));
  for (const double reward : play.rewards) history_->add(reward);
  for (const std::uint64_t word : streams_[observer].state()) history_->add(word);
}

Result<Outcome> Training::end_episode(const std::vector<std::optional<Play>>& plays) {
  if (!playing_) return Error(Errc::bad_arguments, "no episode is in progress");
  const auto count = count_fitting(plays);
  if (!count) return count.error();
  playing_ = false;
  const auto observers = static_cast<double>(*count);
  Outcome outcome;
  std::vector<cartpole::EpisodeRecord> episodes;
  std::vector<double> weights;
  for (std::size_t observer = 0; observer < plays.size(); ++observer) {
    if (!plays[observer]) continue;
    const Play& play = *plays[observer];
    remember(observer, play);
    outcome.mean_reward += play.mean_reward() / observers;
    outcome.steps += static_cast<std::int64_t>(play.returns.size());
    for (const double value : play.returns) weights.push_back(value / observers);
    episodes.push_back(std::move(records_[observer]));
  }
  const auto loss = gradient_.step(episodes, weights);
  if (!loss) return loss.error();
  outcome.loss = *loss;
  env_steps_ += outcome.steps;
  const double newest = options_.config.running_average;
  running_reward_ = newest * outcome.mean_reward + (1 - newest) * running_reward_;
  outcome.running_reward = running_reward_;
  return outcome;
}

std::string Training::fingerprint() const {
  Fingerprint whole(*history_);
  cartpole::add_parameters(*policy_, whole);
  return whole.text();
}

}  // namespace caftan::cartpole_batch
