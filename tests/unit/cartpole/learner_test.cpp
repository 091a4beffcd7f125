#include "cartpole/learner.hpp"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

namespace caftan::cartpole::learner_test {
namespace {

Policy make_policy(std::size_t hidden = 32) {
  rl::Pcg64 random(1);
  return {hidden, 0.6, random};
}

/// An episode of `steps` steps over states drawn from `seed`, with reward 1 each.
EpisodeRecord make_episode(const Policy& policy, int steps, std::uint64_t seed) {
  EpisodeRecord record;
  rl::Pcg64 random(seed);
  for (int step = 0; step < steps; ++step) {
    State state;
    for (float& value : state) value = static_cast<float>(random.uniform(-0.2, 0.2));
    choose_action(policy, state, random, record);
    record.trajectory.append_reward(1.0);
  }
  record.random = random.state();
  return record;
}

TEST(Adam, FollowsTorchsFusedAdam) {
  const at::NoGradGuard no_grad;
  at::Tensor ours = at::linspace(-1, 1, 101, at::kFloat);
  at::Tensor theirs = ours.clone();
  std::vector<at::Tensor> parameters = {theirs};
  std::vector<at::Tensor> means = {at::zeros({101}, at::kFloat)};
  std::vector<at::Tensor> variances = {at::zeros({101}, at::kFloat)};
  std::vector<at::Tensor> steps = {at::zeros({}, at::kFloat)};
  Adam adam({ours}, 0.01);
  for (int step = 1; step <= 30; ++step) {
    const std::vector<at::Tensor> gradients = {theirs.sin().mul(step % 3 - 1.5)};
    steps[0] += 1;
    at::_fused_adam_(parameters, gradients, means, variances, {}, steps, 0.01, 0.9, 0.999, 0.0, 1e-8, false, false);
    adam.step(gradients);
    ASSERT_LT((ours - theirs).abs().max().item<double>(), 1e-6) << step;
  }
}

TEST(Adam, BumpsTheVersionOfWhatItChangesAndOnlyThat) {
  at::Tensor first = at::zeros({3}, at::kFloat);
  at::Tensor second = at::zeros({3}, at::kFloat);
  Adam adam({first, second}, 0.1);
  const auto version = first._version();
  const auto untouched = second._version();
  adam.step(std::vector<at::Tensor>{at::full({3}, 1.0, at::kFloat), at::Tensor()});
  EXPECT_GT(first._version(), version);
  EXPECT_NEAR(first[0].item<double>(), -0.1, 1e-6);
  EXPECT_EQ(second._version(), untouched);
  EXPECT_EQ(second.abs().max().item<double>(), 0.0);
}

TEST(Learner, MakesWhatGaveMoreReturnMoreProbable) {
  Policy policy = make_policy();
  Learner learner(policy, {.learning_rate = 1e-3});
  EpisodeRecord record = make_episode(policy, 2, 3);
  std::ranges::fill(record.trajectory.observations, 0.1F);  // the same state, once with each action
  record.trajectory.actions = {0, 1};
  std::ranges::fill(record.kept, 0xffffffffU);
  record.trajectory.rewards = {-5.0, 1.0};  // returns -4.01 and 1
  const at::Tensor states = at::full({1, 4}, 0.1, at::kFloat);
  const at::Tensor masks = at::full({1, 32}, policy.kept_scale(), at::kFloat);
  const double before = policy.log_probabilities(states, masks)[0][1].item<double>();
  ASSERT_TRUE(learner.learn(std::span(&record, 1)));
  EXPECT_GT(policy.log_probabilities(states, masks)[0][1].item<double>(), before);
}

TEST(Learner, LossIsTheNegativeSumOfLogProbabilitiesTimesNormalizedReturns) {
  Policy policy = make_policy();
  EpisodeRecord record = make_episode(policy, 3, 4);
  std::vector<double> returns = {1 + 0.5 * (1 + 0.5), 1.5, 1};
  rl::normalize(returns);
  double expected = 0;
  for (std::int64_t step = 0; step < 3; ++step) {
    at::Tensor state = at::zeros({1, 4}, at::kFloat);
    at::Tensor mask = at::zeros({1, 32}, at::kFloat);
    std::copy_n(record.trajectory.observations.data() + 4 * step, 4, state.mutable_data_ptr<float>());
    for (std::int64_t j = 0; j < 32; ++j) {
      mask.mutable_data_ptr<float>()[j] =
          ((record.kept[static_cast<std::size_t>(step)] >> j) & 1) != 0 ? policy.kept_scale() : 0.0F;
    }
    const auto action = record.trajectory.actions[static_cast<std::size_t>(step)];
    expected -=
        policy.log_probabilities(state, mask)[0][action].item<double>() * returns[static_cast<std::size_t>(step)];
  }
  const auto outcome = Learner(policy, {.gamma = 0.5}).learn(std::span(&record, 1));
  ASSERT_TRUE(outcome);
  EXPECT_NEAR(outcome->loss, expected, 1e-5);
}

TEST(Learner, RunningRewardFollowsTheWorstObserver) {
  Policy policy = make_policy();
  Learner learner(policy, {.running_average = 0.25});
  const std::vector<EpisodeRecord> episodes = {make_episode(policy, 8, 1), make_episode(policy, 4, 2)};
  auto outcome = learner.learn(episodes);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->worst_reward, 4.0);
  EXPECT_EQ(outcome->mean_reward, 6.0);
  EXPECT_EQ(outcome->steps, 12);
  EXPECT_EQ(outcome->running_reward, 1.0);
  outcome = learner.learn(episodes);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->running_reward, 1.0 + 0.75);
  EXPECT_EQ(learner.running_reward(), 1.75);
}

TEST(Learner, ALossThatIsNoNumberEndsTheTrainingAndNamesTheLearningRate) {
  Policy policy = make_policy();
  Learner learner(policy, {.learning_rate = 1e30});
  EpisodeRecord record = make_episode(policy, 4, 1);
  record.trajectory.rewards = {1.0, 2.0, 3.0, 4.0};
  ASSERT_TRUE(learner.learn(std::span(&record, 1))) << "the first loss is of the first policy";
  const auto outcome = learner.learn(std::span(&record, 1));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Errc::invalid_config);
  EXPECT_EQ(outcome.error().text(),
            "the loss is nan, the training has diverged; its learning rate was 1e+30: start anew with a lower "
            "learning_rate");
}

TEST(Learner, AnEpisodeOfOneStepChangesNothing) {
  Policy policy = make_policy();
  const at::Tensor before = policy.snapshot();
  const EpisodeRecord record = make_episode(policy, 1, 1);
  ASSERT_TRUE(Learner(policy, {}).learn(std::span(&record, 1)));
  EXPECT_TRUE(policy.snapshot().equal(before)) << "its normalised return is 0";
}

TEST(Learner, RefusesEpisodesThatDoNotFitAndLearnsNothing) {
  Policy policy = make_policy();
  Learner learner(policy, {});
  const at::Tensor before = policy.snapshot();
  std::vector<EpisodeRecord> wrong(5, make_episode(policy, 4, 1));
  wrong[0].trajectory.actions[2] = 2;
  wrong[1].trajectory.rewards.pop_back();
  wrong[2].trajectory.observations.pop_back();
  wrong[3].kept.pop_back();
  wrong[4] = {};
  for (const EpisodeRecord& record : wrong) {
    const auto outcome = learner.learn(std::span(&record, 1));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Errc::bad_arguments);
  }
  EXPECT_FALSE(learner.learn({}));
  EXPECT_TRUE(policy.snapshot().equal(before));
  EXPECT_EQ(learner.running_reward(), 0.0);
}

TEST(Learner, OnOneThreadTheBitsDoNotDependOnTheThreadsOfTheProcess) {
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> results;
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    Policy policy = make_policy(128);
    const EpisodeRecord record = make_episode(policy, 700, 1);
    Learner learner(policy, {.one_thread = true});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(learner.learn(std::span(&record, 1)));
    EXPECT_EQ(at::get_num_threads(), count) << "restored";
    results.push_back(policy.snapshot());
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(results[0].equal(results[1]));
  EXPECT_TRUE(results[0].equal(results[2]));
}

}  // namespace
}  // namespace caftan::cartpole::learner_test
