#include "cartpole/training.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "cartpole/local.hpp"

namespace caftan::cartpole::training_test {
namespace {

LocalOptions make_options(std::size_t observers, std::int64_t max_episodes, std::uint64_t seed = 2) {
  LocalOptions options;
  options.agent.max_episodes = max_episodes;
  options.agent.evaluate = 20;
  options.seed = seed;
  for (std::size_t i = 0; i < observers; ++i) options.environment_seeds.push_back(100 * seed + i);
  return options;
}

Training make_training(const LocalOptions& options) {
  auto made = Training::make({.config = options.agent,
                              .observers = options.environment_seeds.size(),
                              .seed = options.seed,
                              .solved_at = 475.0,
                              .deterministic = true});
  if (!made) throw std::runtime_error(made.error().message());
  return *std::move(made);
}

/// One observer of a training that asks for each action, as the protocol with two calls a step does.
class CallingObserver {
 public:
  CallingObserver(std::size_t index, std::uint64_t seed)
      : index_(index), seed_(seed), environment_(*rl::make_environment("CartPole-v1")) {}

  void start(const Training& training) {
    state_ = to_state(environment_->reset(episode_seed(seed_, training.episode())).value());
    ended_ = false;
  }
  /// Takes one step; returns whether the episode goes on.
  bool step(Training& training) {
    if (ended_ || training.steps_of(index_) >= training.step_budget()) return false;
    const auto action = training.select_action(index_, state_);
    const auto transition = environment_->step(action ? *action : -1);
    if (!transition) throw std::runtime_error("refused");
    ended_ = transition->ended();
    state_ = to_state(transition->observation);
    return training.report_reward(index_, transition->reward).has_value() && !ended_;
  }

 private:
  std::size_t index_;
  std::uint64_t seed_;
  std::unique_ptr<rl::Environment> environment_;
  State state_{};
  bool ended_ = false;
};

/// Trains with the calls of all observers in turn, or with all calls of one observer after those of the next.
std::string train_with_calls(const LocalOptions& options, bool interleaved) {
  Training training = make_training(options);
  std::vector<CallingObserver> observers;
  for (std::size_t i = 0; i < options.environment_seeds.size(); ++i) {
    observers.emplace_back(i, options.environment_seeds[i]);
  }
  while (!training.is_solved() && !training.is_exhausted()) {
    training.begin_episode();
    for (CallingObserver& observer : observers) observer.start(training);
    if (interleaved) {
      for (bool any = true; any;) {
        any = false;
        for (CallingObserver& observer : observers) any = observer.step(training) || any;
      }
    } else {
      for (auto observer = observers.rbegin(); observer != observers.rend(); ++observer) {
        while (observer->step(training)) {
        }
      }
    }
    if (!training.end_episode()) throw std::runtime_error("not learned");
  }
  return training.fingerprint();
}

TEST(Training, CallsInAnyOrderAndRolloutsReachTheSameFingerprint) {
  LocalOptions options = make_options(3, 25);
  options.agent.steps_per_episode = 60;  // the budget of an observer is 20 steps, which some episodes reach
  options.deterministic = true;
  const auto report = train_locally(options);
  ASSERT_TRUE(report);
  EXPECT_EQ(train_with_calls(options, true), report->fingerprint);
  EXPECT_EQ(train_with_calls(options, false), report->fingerprint);
}

TEST(Training, FingerprintDependsOnTheSeedsOfAgentAndObservers) {
  LocalOptions options = make_options(2, 3);
  const auto first = train_locally(options);
  options.seed += 1;
  const auto other_agent = train_locally(options);
  options.seed -= 1;
  options.environment_seeds[1] += 1;
  const auto other_observer = train_locally(options);
  ASSERT_TRUE(first && other_agent && other_observer);
  EXPECT_NE(first->fingerprint, other_agent->fingerprint);
  EXPECT_NE(first->fingerprint, other_observer->fingerprint);
}

TEST(Training, M12_TheFingerprintCountsEachParameterToItsLastBit) {
  const Training training = make_training(make_options(1, 1));
  const std::string whole = training.fingerprint();
  std::size_t parameters = 0;
  for (const at::Tensor& parameter : training.policy().parameters()) {
    for (const std::int64_t at : {std::int64_t{0}, parameter.numel() - 1}) {
      float& value = parameter.data_ptr<float>()[at];
      const float before = value;
      value = std::nextafter(value, 1e9F);
      EXPECT_NE(training.fingerprint(), whole) << "parameter " << parameters << ", value " << at;
      value = before;
    }
    ++parameters;
  }
  EXPECT_GE(parameters, 4U);
  EXPECT_EQ(training.fingerprint(), whole);
}

TEST(Training, TheFingerprintCountsTheStatesOfTheRandomStreams) {
  const auto fingerprint_with = [](std::size_t word, std::uint64_t change) {
    Training training = make_training(make_options(1, 5));
    training.begin_episode();
    const auto environment = *rl::make_environment("CartPole-v1");
    EpisodeRecord record =
        roll_out(training.policy(), *environment, 3, rl::Pcg64(training.stream_seed(0)), training.step_budget())
            .value();
    record.random[word] ^= change;
    EXPECT_TRUE(training.accept(0, std::move(record)));
    EXPECT_TRUE(training.end_episode());
    return training.fingerprint();
  };
  const std::string whole = fingerprint_with(0, 0);
  EXPECT_EQ(fingerprint_with(0, 0), whole);
  for (std::size_t word = 0; word < 4; ++word) EXPECT_NE(fingerprint_with(word, 1), whole) << word;
}

TEST(Training, SharesTheStepsOfAnEpisodeAmongItsObservers) {
  LocalOptions options = make_options(3, 1);
  options.agent.steps_per_episode = 10;
  EXPECT_EQ(make_training(options).step_budget(), 3);
  options.agent.steps_per_episode = 2;
  const auto made = train_locally(options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::invalid_config);
}

TEST(Training, RefusesCallsOutOfTurn) {
  LocalOptions options = make_options(1, 5);
  options.agent.steps_per_episode = 2;
  Training training = make_training(options);
  const State state{};
  EXPECT_FALSE(training.select_action(0, state)) << "before the first episode";
  training.begin_episode();
  EXPECT_FALSE(training.report_reward(0, 1)) << "nothing was done";
  EXPECT_FALSE(training.select_action(1, state)) << "no such observer";
  EXPECT_FALSE(training.report_reward(1, 1)) << "no such observer";
  ASSERT_TRUE(training.select_action(0, state));
  EXPECT_FALSE(training.select_action(0, state)) << "the reward is missing";
  EXPECT_FALSE(training.accept(0, {})) << "it plays with calls already";
  ASSERT_TRUE(training.report_reward(0, 1));
  EXPECT_FALSE(training.report_reward(0, 1)) << "twice";
  ASSERT_TRUE(training.select_action(0, state));
  ASSERT_TRUE(training.report_reward(0, 1));
  EXPECT_FALSE(training.select_action(0, state)) << "the budget is used up";
  EXPECT_EQ(training.steps_of(0), 2);
  EXPECT_EQ(training.reward_of(0), 2.0);
  EXPECT_TRUE(training.end_episode());
  EXPECT_FALSE(training.end_episode()) << "it has ended";
}

TEST(Training, AnEpisodeThatCannotBeLearnedFromLeavesTheParameters) {
  Training training = make_training(make_options(2, 5));
  const at::Tensor before = training.policy().snapshot();
  training.begin_episode();
  ASSERT_TRUE(training.select_action(0, State{}));
  ASSERT_TRUE(training.report_reward(0, 1));
  const auto outcome = training.end_episode();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Errc::bad_arguments);
  EXPECT_TRUE(training.policy().snapshot().equal(before));
  EXPECT_EQ(training.env_steps(), 0);
}

TEST(TrainLocally, SolvesCartPoleAndThenBalancesGreedily) {
  std::vector<double> running;
  LocalOptions options = make_options(4, 1000);
  options.on_episode = [&running](std::int64_t, const EpisodeOutcome& outcome) {
    running.push_back(outcome.running_reward);
  };
  const auto report = train_locally(options);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_solved);
  EXPECT_EQ(static_cast<std::size_t>(report->episodes), running.size());
  EXPECT_GT(running.back(), 475.0);
  EXPECT_LE(*std::max_element(running.begin(), running.end() - 1), 475.0) << "stops at once";
  ASSERT_EQ(report->evaluation.size(), 20U);
  EXPECT_GT(std::accumulate(report->evaluation.begin(), report->evaluation.end(), 0.0) / 20, 475.0);
}

TEST(TrainLocally, ReportsThatItDidNotSolve) {
  const auto report = train_locally(make_options(1, 5));
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->is_solved);
  EXPECT_EQ(report->episodes, 5);
  EXPECT_TRUE(report->evaluation.empty());
  EXPECT_LT(report->running_reward, 475.0);
}

TEST(TrainLocally, TakesTheThresholdOfTheEnvironmentUnlessAnotherIsGiven) {
  LocalOptions options = make_options(1, 60);
  options.agent.solved_at = 5.0;
  auto report = train_locally(options);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_solved);
  EXPECT_LT(report->episodes, 60);
  options.agent.solved_at.reset();
  report = train_locally(options);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->is_solved);
}

TEST(TrainLocally, NeedsAnObserver) {
  const auto report = train_locally(make_options(0, 1));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Errc::invalid_config);
}

}  // namespace
}  // namespace caftan::cartpole::training_test
