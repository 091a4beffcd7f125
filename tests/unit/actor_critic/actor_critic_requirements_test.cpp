#include "actor_critic/requirements.hpp"

#include <gtest/gtest.h>

#include <any>

namespace caftan::actor_critic::actor_critic_requirements_test {
namespace {

using Kind = app::MissingRequirement::Kind;

class Requirements : public ::testing::Test {
 protected:
  std::vector<app::MissingRequirement> find(std::size_t actors, bool has_evaluator = true) {
    app::RolePlace place{.role = "learner", .deterministic = deterministic_};
    place.uses["actors"] = std::vector<const std::any*>(actors, &actor_);
    if (has_evaluator) place.uses["evaluator"] = {&evaluator_};
    return find_missing(config_, place, 1);
  }
  LearnerConfig config_{};
  bool deterministic_ = false;
  std::any actor_ = ActorConfig{};  // 16 environments
  std::any evaluator_ = EvaluatorConfig{};
};

TEST_F(Requirements, ThatAreMetAreNone) { EXPECT_TRUE(find(4).empty()); }

TEST_F(Requirements, ActorsBeyondTheFramesToShare) {
  config_.max_frames = 4 * 16 * 32;
  EXPECT_TRUE(find(4).empty());
  const auto missing = find(5);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].keys.front(), "max_frames");
  EXPECT_EQ(missing[0].kind, Kind::file);
  EXPECT_NE(missing[0].text.find("5 actors play 2,560 frames"), std::string::npos) << missing[0].text;
}

TEST_F(Requirements, ABatchThatNeverComesTogether) {
  config_.batch = 8;
  EXPECT_TRUE(find(4).empty());
  config_.batch = 9;
  ASSERT_EQ(find(4).size(), 1U);
  EXPECT_EQ(find(4)[0].keys, (std::vector<std::string>{"batch"}));
}

TEST_F(Requirements, MoreMinibatchesThanFrames) {
  config_.loss.minibatches = 512;
  EXPECT_TRUE(find(1).empty());
  config_.loss.minibatches = 513;
  ASSERT_EQ(find(1).size(), 1U);
  EXPECT_EQ(find(1)[0].keys, (std::vector<std::string>{"loss.minibatches"}));
}

TEST_F(Requirements, ATargetWithoutAnEvaluator) {
  EXPECT_TRUE(find(1, false).empty());
  config_.target = 475;
  EXPECT_EQ(find(1, false).at(0).keys.front(), "target");
}

TEST_F(Requirements, EqualBitsNeedActorsInStep) {
  deterministic_ = true;
  config_.ahead = 0;
  EXPECT_TRUE(find(1).empty());
  config_.ahead = 1;
  EXPECT_EQ(find(1).at(0).keys, (std::vector<std::string>{"ahead"}));
  config_.ahead = 0;
  config_.batch = 1;
  EXPECT_EQ(find(1).at(0).keys, (std::vector<std::string>{"batch"}));
}

TEST_F(Requirements, EpochsWithoutALimitAreDoubtful) {
  config_.loss.epochs = 3;
  EXPECT_EQ(find(1).at(0).kind, Kind::doubt);
  config_.loss.policy = LossConfig::Policy::clipped;
  EXPECT_TRUE(find(1).empty());
}

TEST_F(Requirements, ACheckpointThatIsNotThere) {
  config_.resume = "/nowhere";
  const auto missing = find(1);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].keys.front(), "resume");
  EXPECT_NE(missing[0].text.find("there is no /nowhere"), std::string::npos);
}

}  // namespace
}  // namespace caftan::actor_critic::actor_critic_requirements_test
