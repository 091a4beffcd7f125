#include "cartpole_learning/policy.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace caftan::cartpole::policy_test {
namespace {

Policy make_policy(std::size_t hidden, double dropout, std::uint64_t seed = 1) {
  rl::Pcg64 random(seed);
  return {hidden, dropout, random};
}

State make_state(rl::Pcg64& random) {
  State state;
  for (float& value : state) value = static_cast<float>(random.uniform(-2, 2));
  return state;
}

/// Returns the log-probabilities [2] of one state under a mask, by the batch path.
at::Tensor batch_of_one(const Policy& policy, const State& state, std::span<const std::uint64_t> kept) {
  const at::NoGradGuard no_grad;
  at::Tensor states = at::zeros({1, 4}, at::kFloat);
  std::ranges::copy(state, states.mutable_data_ptr<float>());
  at::Tensor masks = at::ones({1, static_cast<std::int64_t>(policy.hidden())}, at::kFloat);
  for (std::size_t j = 0; !kept.empty() && j < policy.hidden(); ++j) {
    const bool is_kept = ((kept[j / 64] >> (j % 64)) & 1) != 0;
    masks.mutable_data_ptr<float>()[j] = is_kept ? policy.kept_scale() : 0.0F;
  }
  return policy.log_probabilities(states, masks)[0];
}

TEST(Policy, SampledActionFollowsTheProbabilityOfTheBatch) {
  const Policy policy = make_policy(70, 0.6);
  rl::Pcg64 random(5);
  rl::Pcg64 states(6);
  std::vector<std::uint64_t> kept(policy.mask_words());
  for (int i = 0; i < 500; ++i) {
    const State state = make_state(states);
    rl::Pcg64 draws = random;
    const int action = policy.sample_action(state, random, kept);
    for (int pair = 0; pair < 35; ++pair) draws();  // 70 units, two to a draw
    const double choice = draws.uniform();
    const double probability = std::exp(batch_of_one(policy, state, kept)[0].item<double>());
    if (std::abs(choice - probability) > 1e-5) {
      EXPECT_EQ(action, choice < probability ? 0 : 1) << i;
    }
    EXPECT_EQ(draws.state(), random.state()) << "one step draws the mask and one number";
  }
}

/// A policy whose second layer has large weights that nearly cancel between the actions: rounding errors decide about
/// actions, so that another order of additions would show.
Policy make_rough_policy(std::size_t hidden) {
  Policy policy = make_policy(hidden, 0.5);
  at::Tensor snapshot = policy.snapshot();
  float* second = snapshot.mutable_data_ptr<float>() + hidden * 5;
  rl::Pcg64 random(9);
  for (std::size_t j = 0; j < hidden; ++j) {
    second[j] = static_cast<float>(random.uniform(-1e7, 1e7));
    second[hidden + j] = second[j] + static_cast<float>(random.uniform(-1, 1));
  }
  EXPECT_TRUE(policy.load(snapshot));
  return policy;
}

TEST(Policy, RowsTogetherGetTheActionsThatTheyGetAlone) {
  for (const std::size_t hidden : {1U, 63U, 64U, 130U}) {
    const Policy policy = make_rough_policy(hidden);
    rl::Pcg64 states(6);
    std::size_t ones = 0;
    std::size_t all = 0;
    for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 40U}) {
      std::vector<rl::Pcg64> together;
      for (std::size_t row = 0; row < count; ++row) together.emplace_back(row / 2);  // two rows may share a stream
      std::vector<rl::Pcg64> alone = together;
      std::vector<std::uint64_t> kept(count * policy.mask_words());
      std::vector<Policy::Row> rows;
      for (std::size_t row = 0; row < count; ++row) {
        rows.push_back({make_state(states), &together[row - row % 2],
                        std::span(kept).subspan(row * policy.mask_words(), policy.mask_words())});
      }
      const std::vector<int> actions = policy.sample_actions(rows);
      ASSERT_EQ(actions.size(), count);
      std::vector<std::uint64_t> mask(policy.mask_words());
      for (std::size_t row = 0; row < count; ++row) {
        EXPECT_EQ(actions[row], policy.sample_action(rows[row].state, alone[row - row % 2], mask))
            << hidden << " " << row;
        EXPECT_TRUE(std::ranges::equal(rows[row].kept, mask));
        ones += static_cast<std::size_t>(actions[row]);
      }
      for (std::size_t row = 0; row < count; ++row) EXPECT_EQ(together[row].state(), alone[row].state());
      all += count;
    }
    EXPECT_GT(ones, 0U);
    EXPECT_LT(ones, all);
  }
}

TEST(Policy, GreedyActionIsTheMoreProbableOneWithoutDropout) {
  const Policy policy = make_policy(128, 0.6);
  rl::Pcg64 states(7);
  int ones = 0;
  for (int i = 0; i < 200; ++i) {
    const State state = make_state(states);
    const at::Tensor logs = batch_of_one(policy, state, {});
    const double margin = logs[1].item<double>() - logs[0].item<double>();
    if (std::abs(margin) < 1e-5) continue;
    EXPECT_EQ(policy.greedy_action(state), margin > 0 ? 1 : 0);
    ones += policy.greedy_action(state);
  }
  EXPECT_GT(ones, 0);
  EXPECT_LT(ones, 200);
}

TEST(Policy, KeepsUnitsWithTheGivenProbabilityAndNoneBeyondItsSize) {
  const Policy policy = make_policy(70, 0.6);
  rl::Pcg64 random(8);
  std::vector<std::uint64_t> kept(policy.mask_words());
  ASSERT_EQ(kept.size(), 2U);
  int count = 0;
  for (int i = 0; i < 1000; ++i) {
    policy.sample_action(State{}, random, kept);
    count += std::popcount(kept[0]) + std::popcount(kept[1]);
    ASSERT_EQ(kept[1] >> 6, 0U);
  }
  EXPECT_NEAR(count / 70000.0, 0.4, 0.01);
}

TEST(Policy, WithoutDropoutEveryUnitIsKept) {
  const Policy policy = make_policy(65, 0.0);
  rl::Pcg64 random(9);
  std::vector<std::uint64_t> kept(policy.mask_words());
  policy.sample_action(State{}, random, kept);
  EXPECT_EQ(kept, (std::vector<std::uint64_t>{~std::uint64_t{0}, 1}));
  EXPECT_EQ(policy.kept_scale(), 1.0F);
}

TEST(Policy, StartsLikeLinearLayersAndTheSameForTheSameSeed) {
  const Policy policy = make_policy(128, 0.6);
  const auto& parameters = policy.parameters();
  ASSERT_EQ(parameters.size(), 4U);
  const double bounds[] = {0.5, 0.5, 1 / std::sqrt(128.0), 1 / std::sqrt(128.0)};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(parameters[i].is_leaf() && parameters[i].requires_grad());
    const double largest = parameters[i].abs().max().item<double>();
    EXPECT_LE(largest, bounds[i]);
    if (parameters[i].numel() > 100) {
      EXPECT_GT(largest, 0.9 * bounds[i]);
    }
  }
  EXPECT_TRUE(policy.snapshot().equal(make_policy(128, 0.6).snapshot()));
  EXPECT_FALSE(policy.snapshot().equal(make_policy(128, 0.6, 2).snapshot()));
}

TEST(Policy, LoadsASnapshotAndTellsAutograd) {
  const Policy source = make_policy(16, 0.6, 1);
  Policy copy = make_policy(16, 0.6, 2);
  const auto version = copy.parameters()[0]._version();
  ASSERT_TRUE(copy.load(source.snapshot()));
  EXPECT_TRUE(copy.snapshot().equal(source.snapshot()));
  EXPECT_GT(copy.parameters()[0]._version(), version);
}

TEST(Policy, ASnapshotDoesNotChangeWithThePolicy) {
  Policy policy = make_policy(16, 0.6, 1);
  const at::Tensor snapshot = policy.snapshot();
  const double before = snapshot[0].item<double>();
  ASSERT_TRUE(policy.load(make_policy(16, 0.6, 2).snapshot()));
  EXPECT_EQ(snapshot[0].item<double>(), before);
  EXPECT_FALSE(snapshot.requires_grad());
}

TEST(Policy, RefusesASnapshotThatDoesNotFitAndStaysAsItIs) {
  Policy policy = make_policy(16, 0.6);
  const at::Tensor before = policy.snapshot();
  const std::vector<at::Tensor> wrong = {at::Tensor(), at::zeros({before.numel() + 1}, at::kFloat),
                                         at::zeros({before.numel()}, at::kDouble),
                                         at::zeros({1, before.numel()}, at::kFloat)};
  for (const at::Tensor& snapshot : wrong) {
    const auto loaded = policy.load(snapshot);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), Errc::bad_arguments);
  }
  EXPECT_TRUE(policy.snapshot().equal(before));
}

}  // namespace
}  // namespace caftan::cartpole::policy_test
