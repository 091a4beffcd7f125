#include "cartpole/messages.hpp"

#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include "cartpole_learning/episode.hpp"
#include "payload.hpp"

namespace caftan::cartpole::messages_test {
namespace {

/// Returns the value as the receiver gets it.
template <class T>
T send(const T& value) {
  const auto payload = test::encode_payload(value);
  if (!payload) throw std::runtime_error(payload.error().message());
  auto received = test::decode_payload<T>(*payload);
  if (!received) throw std::runtime_error(received.error().message());
  return *std::move(received);
}

TEST(Messages, AnEpisodeRecordTravelsWhole) {
  rl::Pcg64 random(1);
  const Policy policy(70, 0.6, random);
  EpisodeRecord record;
  for (int step = 0; step < 3; ++step) {
    const State state{0.1F, 0.2F, 0.3F, static_cast<float>(step)};
    choose_action(policy, state, random, record);
    record.trajectory.append_outcome({.observation = state, .reward = step + 0.5, .truncated = true});
  }
  record.random = random.state();
  const EpisodeRecord received = send(record);
  EXPECT_EQ(received.trajectory.observations, record.trajectory.observations);
  EXPECT_EQ(received.trajectory.actions, record.trajectory.actions);
  EXPECT_EQ(received.trajectory.rewards, record.trajectory.rewards);
  EXPECT_EQ(received.trajectory.last_observation, (std::vector<float>{0.1F, 0.2F, 0.3F, 2.0F}));
  EXPECT_TRUE(received.trajectory.truncated);
  EXPECT_FALSE(received.trajectory.terminated);
  EXPECT_EQ(received.kept, record.kept);
  EXPECT_EQ(received.random, record.random);
}

TEST(Messages, APolicyCopyCarriesItsParametersAsATensor) {
  const PolicyCopy copy = {.parameters = at::linspace(-1, 1, 114, at::kFloat), .hidden = 16, .dropout = 0.25};
  const auto payload = test::encode_payload(copy);
  ASSERT_TRUE(payload);
  EXPECT_EQ(payload->tensors.size(), 1U) << "beside the bytes, not in them";
  const PolicyCopy received = send(copy);
  EXPECT_TRUE(received.parameters.equal(copy.parameters));
  EXPECT_EQ(received.hidden, 16);
  EXPECT_EQ(received.dropout, 0.25);
}

TEST(Messages, OrdersReportsAndFactsTravelFieldByField) {
  const EpisodeOrder order =
      send(EpisodeOrder{.observer = 3, .episode = 7, .budget = 1250, .shared_seed = ~std::uint64_t{0}, .fused = true});
  EXPECT_EQ(order.observer, 3U);
  EXPECT_EQ(order.episode, 7);
  EXPECT_EQ(order.budget, 1250);
  EXPECT_EQ(order.shared_seed, ~std::uint64_t{0});
  EXPECT_TRUE(order.fused);
  const EpisodeReport report =
      send(EpisodeReport{.steps = 5, .reward = 4.5, .last_reward = -1, .calls = 10, .call_p50_us = 19});
  EXPECT_EQ(report.steps, 5);
  EXPECT_EQ(report.reward, 4.5);
  EXPECT_EQ(report.last_reward, -1);
  EXPECT_EQ(report.calls, 10);
  EXPECT_EQ(report.call_p50_us, 19);
  const EnvironmentFacts facts = send(EnvironmentFacts{.id = "CartPole-v1", .solved_at = 475.0});
  EXPECT_EQ(facts.id, "CartPole-v1");
  EXPECT_EQ(facts.solved_at, 475.0);
}

}  // namespace
}  // namespace caftan::cartpole::messages_test
