#include "cartpole_batch/training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <span>

#include "caftan/rl/returns.hpp"
#include "cartpole_learning/environment.hpp"
#include "cartpole_learning/episode.hpp"

namespace caftan::cartpole_batch::training_test {
namespace {

TrainingOptions make_options(std::size_t observers) {
  TrainingOptions options;
  options.observers = observers;
  options.seed = 7;
  options.deterministic = true;
  options.config.episodes = 4;
  options.config.steps_per_call = 60;
  return options;
}

/// Plays an episode of one observer, who asks the training for each action.
Play play_observer(Training& training, std::size_t observer, const AgentConfig& config) {
  const auto environment = rl::make_environment("CartPole-v1");
  const PlayOptions options{.seed = cartpole::episode_seed(100 + observer, training.episode()),
                            .steps = config.steps_per_call,
                            .gamma = config.gamma};
  auto played = play(**environment, options,
                     [&](const cartpole::State& state) { return training.select_action(observer, state); });
  if (!played) throw std::runtime_error(played.error().text());
  return *std::move(played);
}

using Plays = std::vector<std::optional<Play>>;

/// Trains with the observers one after the other, or the last one first.
std::string train(const TrainingOptions& options, bool backwards) {
  Training training(options);
  while (!training.is_over()) {
    training.begin_episode();
    Plays plays(options.observers);
    for (std::size_t i = 0; i < options.observers; ++i) {
      const std::size_t observer = backwards ? options.observers - 1 - i : i;
      plays[observer] = play_observer(training, observer, options.config);
    }
    if (!training.end_episode(plays)) throw std::runtime_error("refused");
  }
  return training.fingerprint();
}

TEST(BatchTraining, TheOrderOfRequestsChangesNoBit) {
  const TrainingOptions options = make_options(3);
  const std::string forwards = train(options, false);
  EXPECT_EQ(train(options, true), forwards);
  TrainingOptions other = options;
  other.seed = 8;
  EXPECT_NE(train(other, false), forwards);
}

/// As `train`, with the requests of all observers answered together at each step.
std::string train_in_batches(const TrainingOptions& options) {
  Training training(options);
  while (!training.is_over()) {
    training.begin_episode();
    std::vector<std::unique_ptr<rl::Environment>> environments;
    std::vector<cartpole::State> states;
    std::vector<std::vector<std::vector<double>>> rewards(options.observers, {{}});
    const auto seed = [&](std::size_t observer) {
      return cartpole::episode_seed(cartpole::episode_seed(100 + observer, training.episode()),
                                    static_cast<std::int64_t>(rewards[observer].size()) - 1);
    };
    for (std::size_t i = 0; i < options.observers; ++i) {
      environments.push_back(*rl::make_environment("CartPole-v1"));
      states.push_back(cartpole::to_state(environments[i]->reset(seed(i)).value()));
    }
    for (std::int64_t step = 0; step < options.config.steps_per_call; ++step) {
      std::vector<Training::Request> requests;
      for (std::size_t i = options.observers; i-- > 0;) requests.emplace_back(i, states[i]);
      const auto actions = training.select_actions(requests);
      for (std::size_t at = 0; at < requests.size(); ++at) {
        const std::size_t i = std::get<0>(requests[at]);
        const auto transition = environments[i]->step(*actions[at]);
        rewards[i].back().push_back(transition->reward);
        if (transition->ended() && step + 1 < options.config.steps_per_call) {
          rewards[i].emplace_back();
          states[i] = cartpole::to_state(environments[i]->reset(seed(i)).value());
        } else {
          states[i] = cartpole::to_state(transition->observation);
        }
      }
    }
    Plays plays(options.observers);
    for (std::size_t i = 0; i < options.observers; ++i) {
      Play& play = plays[i].emplace();
      const std::vector<std::span<const double>> spans(rewards[i].begin(), rewards[i].end());
      play.returns = rl::discounted_returns(spans, options.config.gamma, rl::ReturnScope::per_observer);
      for (const auto& one : rewards[i]) play.rewards.push_back(std::accumulate(one.begin(), one.end(), 0.0));
    }
    if (!training.end_episode(plays)) throw std::runtime_error("refused");
  }
  return training.fingerprint();
}

TEST(BatchTraining, RequestsTogetherGetTheActionsThatTheyGetAlone) {
  for (const std::size_t observers : {1U, 3U, 10U}) {
    const TrainingOptions options = make_options(observers);
    EXPECT_EQ(train_in_batches(options), train(options, false)) << observers;
  }
}

TEST(BatchTraining, ARequestThatIsRefusedLeavesTheOthersOfItsBatchAlone) {
  TrainingOptions options = make_options(2);
  options.config.steps_per_call = 2;
  Training training(options);
  const cartpole::State state{};
  EXPECT_FALSE(training.select_actions(std::vector<Training::Request>{{0, state}}).front()) << "no episode";
  training.begin_episode();
  const auto actions = training.select_actions(
      std::vector<Training::Request>{{0, state}, {2, state}, {0, state}, {0, state}, {1, state}});
  ASSERT_EQ(actions.size(), 5U);
  EXPECT_TRUE(actions[0]);
  EXPECT_EQ(actions[1].error().code(), Errc::bad_arguments) << "no such observer";
  EXPECT_TRUE(actions[2]);
  EXPECT_NE(actions[3].error().text().find("its steps of this episode are used up"), std::string::npos);
  EXPECT_TRUE(actions[4]);
  Training alone(options);
  alone.begin_episode();
  EXPECT_EQ(*actions[0], alone.select_action(0, state).value());
  EXPECT_EQ(*actions[2], alone.select_action(0, state).value());
  EXPECT_EQ(*actions[4], alone.select_action(1, state).value());
}

TEST(BatchTraining, TheRunningRewardStartsAtZeroAndTakesHalfOfEachEpisodesMean) {
  Training training(make_options(2));
  training.begin_episode();
  const Plays plays{play_observer(training, 0, make_options(2).config),
                    play_observer(training, 1, make_options(2).config)};
  const auto outcome = training.end_episode(plays);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_DOUBLE_EQ(outcome->mean_reward, (plays[0]->mean_reward() + plays[1]->mean_reward()) / 2);
  EXPECT_DOUBLE_EQ(outcome->running_reward, outcome->mean_reward / 2);
  EXPECT_EQ(outcome->steps, 120);
}

TEST(BatchTraining, TheLossIsTheMeanOverTheObservers) {
  // Two observers that play the same steps, one after the other, and one alone: the mean is that of each.
  const auto loss_of = [](const Plays& plays, Training& training) { return training.end_episode(plays)->loss; };
  Training both(make_options(2));
  both.begin_episode();
  const Plays plays{play_observer(both, 0, make_options(2).config), play_observer(both, 1, make_options(2).config)};
  const double mean = loss_of(plays, both);
  double sum = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    Training one(make_options(2));
    one.begin_episode();
    Plays alone(2);
    alone[i] = play_observer(one, i, make_options(2).config);
    sum += loss_of(alone, one);
  }
  EXPECT_NEAR(mean, sum / 2, 1e-3 * std::abs(mean));
}

TEST(BatchTraining, WithoutALostObserverTheOthersGoOn) {
  Training training(make_options(2));
  training.begin_episode();
  const cartpole::State state{};
  ASSERT_TRUE(training.select_action(1, state)) << "it asked, and was lost then";
  Plays plays(2);
  plays[0] = play_observer(training, 0, make_options(2).config);
  const auto outcome = training.end_episode(plays);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->steps, 60);
  training.begin_episode();
  EXPECT_EQ(training.end_episode(Plays(2)).error().code(), Errc::bad_arguments) << "none is left";
}

TEST(BatchTraining, RefusesWhatDoesNotFit) {
  Training training(make_options(2));
  const cartpole::State state{};
  EXPECT_EQ(training.select_action(0, state).error().code(), Errc::bad_arguments) << "no episode";
  EXPECT_EQ(training.end_episode(Plays(2)).error().code(), Errc::bad_arguments) << "no episode";
  training.begin_episode();
  EXPECT_EQ(training.select_action(2, state).error().code(), Errc::bad_arguments) << "no such observer";
  Plays plays{play_observer(training, 0, make_options(2).config), play_observer(training, 1, make_options(2).config)};
  EXPECT_EQ(training.select_action(0, state).error().code(), Errc::bad_arguments) << "its steps are used up";
  EXPECT_EQ(training.end_episode(Plays(1)).error().code(), Errc::bad_arguments);
  Plays shorter = plays;
  shorter[1]->returns.pop_back();
  const auto refused = training.end_episode(shorter);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("observer 1: 59 returns"), std::string::npos) << refused.error().text();
  Plays without = plays;
  without[0]->rewards.clear();
  EXPECT_EQ(training.end_episode(without).error().code(), Errc::bad_arguments);
  EXPECT_TRUE(training.end_episode(plays)) << "nothing was lost by the refusals";
}

}  // namespace
}  // namespace caftan::cartpole_batch::training_test
