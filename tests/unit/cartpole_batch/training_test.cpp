#include "cartpole_batch/training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "cartpole_learning/environment.hpp"

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
