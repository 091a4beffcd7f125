#include "actor_critic/learning.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "actor_critic/local.hpp"
#include "agents/environments.hpp"

namespace caftan::actor_critic::learning_test {
namespace {

LocalOptions made_options(const std::string& environment) {
  LocalOptions options;
  options.learner.environment = environment;
  options.learner.unroll = 16;
  options.learner.network.hidden = 32;
  options.learner.optimizer.lr = 5e-3;
  options.learner.max_frames = 200'000;
  options.learner.evaluate_every = 10'000;
  options.evaluator.episodes = 20;
  options.actor.environments = 16;
  options.seed = 3;
  options.actor_seeds = {4, 5};
  options.evaluation_seed = 6;
  options.deterministic = true;
  return options;
}

TEST(TrainLocally, LearnsWithBothLosses) {
  for (const auto policy : {LossConfig::Policy::vtrace, LossConfig::Policy::clipped}) {
    LocalOptions options = made_options("GridWorld");
    options.learner.loss.policy = policy;
    options.learner.target = -12;  // the mean shortest way has about 3 steps, a random walk takes 30
    if (policy == LossConfig::Policy::clipped) {
      options.learner.loss.epochs = 2;
      options.learner.loss.minibatches = 2;
      options.learner.loss.lambda = 0.95;
    }
    const auto report = train_locally(rl::Environments(), options);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_GE(report->state.best, -12);
  }
}

TEST(TrainLocally, GivesTheSameBitsAgain) {
  LocalOptions options = made_options("Pendulum-v1");
  options.learner.max_frames = 3'000;
  const auto first = train_locally(rl::Environments(), options);
  const auto second = train_locally(rl::Environments(), options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->fingerprint, second->fingerprint);
  options.actor_seeds[1] = 9;
  EXPECT_NE(train_locally(rl::Environments(), options)->fingerprint, first->fingerprint);
}

/// A learning on CartPole and a player for it.
struct Made {
  explicit Made(const LearnerConfig& config)
      : environments(agents::make_environments(rl::Environments(), {"CartPole-v1", 1}, 4, {}).value()),
        shape(agents::shape_for(environments->spec(), 8, 1)),
        player(std::move(environments), shape, 1),
        learning(Learning::make({.config = config, .shape = shape, .seed = 2, .deterministic = true}).value()) {
    player.begin_part(0).value();
  }
  std::vector<Trajectories> play() {
    player.load(learning.weights()).value();
    std::vector<Trajectories> played{player.play(8).value()};
    played[0].version = static_cast<std::uint64_t>(learning.state().updates);
    return played;
  }
  std::unique_ptr<rl::VectorEnvironment> environments;
  agents::PolicyShape shape;
  Player player;
  Learning learning;
};

TEST(Learning, TheRatioOfANewPolicyToItselfIsOne) {
  Made made({});
  for (std::int64_t update = 1; update <= 3; ++update) {
    const auto report = made.learning.update(made.play());
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_NEAR(report->ratio, 1, 1e-5);
    EXPECT_EQ(report->lag, 0);
    EXPECT_EQ(report->frames, 32);
    EXPECT_EQ(made.learning.state().frames, 32 * update);
  }
  const auto old = made.play();
  ASSERT_TRUE(made.learning.update(old));
  const auto late = made.learning.update(old);
  EXPECT_EQ(late->lag, 1);
  EXPECT_NE(late->ratio, 1);
}

TEST(Learning, RefusesTrajectoriesOfAnotherPolicyAndStaysAsItWas) {
  Made made({});
  auto played = made.play();
  played[0].actions.clear();
  const std::string before = made.learning.fingerprint();
  const auto refused = made.learning.update(played);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  EXPECT_FALSE(made.learning.update({}));
  EXPECT_EQ(made.learning.fingerprint(), before);
}

TEST(Learning, NamesATrainingThatDiverges) {
  Made made({});
  auto played = made.play();
  played[0].rewards[5] = std::numeric_limits<float>::infinity();
  const auto diverged = made.learning.update(played);
  ASSERT_FALSE(diverged);
  EXPECT_EQ(diverged.error().code(), Errc::invalid_config);
  EXPECT_NE(diverged.error().text().find("update 1: the loss is "), std::string::npos) << diverged.error().text();
  EXPECT_NE(diverged.error().text().find("optimizer.lr"), std::string::npos);
}

TEST(Learning, GoesOnBitForBit) {
  Made one({});
  Made other({});
  for (int update = 0; update < 3; ++update) ASSERT_TRUE(one.learning.update(one.play()));
  const auto optimizer = one.learning.optimizer().save();
  ASSERT_TRUE(other.learning.resume(one.learning.state(), one.learning.parameters(), *optimizer));
  EXPECT_EQ(other.learning.fingerprint(), one.learning.fingerprint());
  one.player.begin_part(1).value();
  other.player.begin_part(1).value();
  for (int update = 0; update < 2; ++update) {
    ASSERT_TRUE(one.learning.update(one.play()));
    ASSERT_TRUE(other.learning.update(other.play()));
  }
  EXPECT_EQ(other.learning.fingerprint(), one.learning.fingerprint());
  std::vector<at::Tensor> few = one.learning.parameters();
  few.pop_back();
  EXPECT_FALSE(other.learning.resume(one.learning.state(), few, *optimizer));
}

TEST(Learning, RemembersTheBestEvaluation) {
  Made made({});
  EXPECT_TRUE(made.learning.take_evaluation(10, 5));
  EXPECT_FALSE(made.learning.take_evaluation(20, 4));
  EXPECT_TRUE(made.learning.take_evaluation(30, 6));
  EXPECT_EQ(made.learning.state().best, 6);
  EXPECT_EQ(made.learning.state().evaluated_at, 30);
}

TEST(LearningRate, FollowsItsSchedule) {
  OptimizerConfig config{.lr = 2};
  EXPECT_EQ(learning_rate_at(config, 0.9), 2);
  config.schedule = OptimizerConfig::Schedule::linear;
  EXPECT_EQ(learning_rate_at(config, 0), 2);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0.25), 1.5);
  EXPECT_EQ(learning_rate_at(config, 1.5), 0);
  config.schedule = OptimizerConfig::Schedule::cosine;
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0.5), 1);
  EXPECT_NEAR(learning_rate_at(config, 1), 0, 1e-12);
}

}  // namespace
}  // namespace caftan::actor_critic::learning_test
