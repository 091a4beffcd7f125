#include "actor_critic/checkpoint.hpp"

#include <gtest/gtest.h>

#include "folder.hpp"

namespace caftan::actor_critic::actor_critic_checkpoint_test {
namespace {

using test::Folder;

Learning made_learning(const LearnerConfig& config) {
  return Learning::make(
             {.config = config, .shape = {.observation = 4, .hidden = 8, .layers = 1, .outputs = 2}, .seed = 2})
      .value();
}

LearnerConfig made_config() {
  LearnerConfig config;
  config.network = {.hidden = 8, .layers = 1};
  return config;
}

TEST(ActorCriticCheckpoint, HoldsAllThatATrainingGoesOnWith) {
  const Folder folder;
  const LearnerConfig config = made_config();
  Learning learning = made_learning(config);
  learning.begin_part();
  (void)learning.take_evaluation(0, 17);
  const auto snapshot = snapshot_of(config, 2, learning);
  ASSERT_TRUE(snapshot);
  ASSERT_TRUE(agents::write_agent(folder.path(), snapshot->agent, snapshot->records, 1));
  EXPECT_EQ(check_checkpoint(folder.path(), facts_of(config, 2), 100).value(), 0);
  const auto read = read_checkpoint(folder.path(), facts_of(config, 2), 100);
  ASSERT_TRUE(read) << read.error().text();
  Learning other = made_learning(config);
  ASSERT_TRUE(other.resume(read->state, read->parameters, read->optimizer));
  EXPECT_EQ(other.fingerprint(), learning.fingerprint());
  EXPECT_EQ(other.state().part, 1);
  EXPECT_EQ(other.state().best, 17);
}

TEST(ActorCriticCheckpoint, SaysInWhatItIsOfAnotherTraining) {
  const Folder folder;
  const LearnerConfig config = made_config();
  const auto snapshot = snapshot_of(config, 2, made_learning(config));
  ASSERT_TRUE(agents::write_agent(folder.path(), snapshot->agent, snapshot->records, 1));
  const auto refused = [&](auto change, std::uint64_t seed = 2) {
    LearnerConfig other = config;
    change(other);
    const auto checked = check_checkpoint(folder.path(), facts_of(other, seed), 100);
    return checked ? std::string() : checked.error().text();
  };
  EXPECT_EQ(refused([](LearnerConfig&) {}), "");
  EXPECT_NE(refused([](LearnerConfig& c) {
              c.environment = "Acrobot-v1";
            }).find("environment = CartPole-v1, here it is Acrobot-v1"),
            std::string::npos);
  EXPECT_NE(refused([](LearnerConfig& c) { c.network.hidden = 16; }).find("network.hidden = 8, here it is 16"),
            std::string::npos);
  EXPECT_NE(refused([](LearnerConfig& c) { c.network.layers = 2; }), "");
  EXPECT_NE(refused([](LearnerConfig& c) { c.network.normalize = false; }), "");
  EXPECT_NE(refused([](LearnerConfig& c) { c.action_repeat = 2; }), "");
  EXPECT_NE(refused([](LearnerConfig& c) { c.optimizer.name = OptimizerConfig::Name::rmsprop; }), "");
  EXPECT_NE(refused([](LearnerConfig&) {}, 3).find("the seed of the parameters"), std::string::npos);
}

TEST(ActorCriticCheckpoint, BeyondTheEndIsRefusedWithTheWayOut) {
  const Folder folder;
  const LearnerConfig config = made_config();
  auto snapshot = snapshot_of(config, 2, made_learning(config));
  ASSERT_TRUE(agents::write_agent(folder.path(), snapshot->agent, snapshot->records, 1));
  const auto refused = check_checkpoint(folder.path(), facts_of(config, 2), -1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("beyond max_frames = -1; raise max_frames"), std::string::npos);
}

TEST(ActorCriticCheckpoint, OfAnotherApplicationIsNoneToGoOnFrom) {
  const Folder folder;
  const agents::PolicyShape shape{.observation = 4, .hidden = 8, .layers = 1, .outputs = 2};
  const agents::Agent agent{
      .environment = {"CartPole-v1", 1}, .shape = shape, .weights = std::vector<float>(agents::weight_count(shape))};
  ASSERT_TRUE(agents::write_agent(folder.path(), agent, {}, 1));
  const auto refused = check_checkpoint(folder.path(), facts_of(made_config(), 2), 100);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::malformed_payload);
  EXPECT_NE(refused.error().text().find("actor_critic.state"), std::string::npos) << refused.error().text();
}

}  // namespace
}  // namespace caftan::actor_critic::actor_critic_checkpoint_test
