// What a pipeline cannot do is reported before anything starts, with the keys and what to do.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"
#include "pipeline/requirements.hpp"

namespace caftan::pipeline::pipeline_requirements_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = app::MissingRequirement::Kind;

constexpr std::uint64_t kSeed = 5;

/// Expects one missing requirement, and returns it as "key: text".
std::string one(const MasterConfig& config, std::size_t stages = 2, Kind kind = Kind::file) {
  const auto missing = find_missing(config, stages, kSeed);
  EXPECT_THAT(missing, SizeIs(1));
  if (missing.empty()) return {};
  EXPECT_EQ(missing.front().kind, kind);
  return missing.front().keys.front() + ": " + missing.front().text;
}

TEST(PipelineRequirements, NothingIsMissing) { EXPECT_THAT(find_missing({}, 2, kSeed), IsEmpty()); }

TEST(PipelineRequirements, EachStageHasAWorkerOfItsOwn) {
  const std::string text =
      "cuts: cuts makes 3 stages, and there are 2 workers for them: each stage is on a worker of its own; set replicas "
      "of the role of the stages to 3";
  EXPECT_EQ(one({.cuts = {"layer2", "layer3"}}), text);
  EXPECT_THAT(one({}, 1), HasSubstr("cuts makes 2 stages, and there are 1 workers"));
  EXPECT_THAT(one({}, 3), HasSubstr("cuts makes 2 stages, and there are 3 workers"));
}

TEST(PipelineRequirements, CutsAndMicroBatchesThatCannotBe) {
  EXPECT_THAT(one({.cuts = {"layer7"}}), HasSubstr("cuts: cuts: there is no layer \"layer7\""));
  EXPECT_THAT(one({.batch = 4, .micro_batch_size = 5}), HasSubstr("micro_batch_size = 5, the batch has 4 images"));
  EXPECT_THAT(one({.batch = 4, .num_micro_batches = 5}), HasSubstr("num_micro_batches = 5, the batch has 4 images"));
  EXPECT_THAT(one({.micro_batch_size = 4, .num_micro_batches = 4}), HasSubstr("leave one of them out"));
  EXPECT_THAT(one({.model = ModelName::mlp, .mlp = {.hidden = {8, 0}}, .cuts = {"fc2"}}),
              HasSubstr("mlp.hidden: mlp.hidden: a layer of 0 units"));
}

TEST(PipelineRequirements, ABatchThatTheImagesDoNotFillAndAGoalThatNothingMeasures) {
  EXPECT_THAT(one({.batch = 2001}), HasSubstr("2000 images, fewer than a batch of 2001"));
  EXPECT_THAT(one({.test_images = 0, .goal = 0.5}), HasSubstr("goal: goal is an accuracy, and test_images = 0"));
}

class PipelineResume : public ::testing::Test {
 protected:
  void write(const MasterConfig& config, std::int64_t step) const {
    checkpoints::write_checkpoint(folder_.path() / "checkpoints",
                                  {.facts = facts_of(config, kSeed), .step = step, .parameters = {at::ones({2})}}, 1)
        .value();
  }
  MasterConfig resumed(MasterConfig config = {}) const {
    config.resume = folder_.path();
    return config;
  }
  test::Folder folder_;
};

TEST_F(PipelineResume, GoesOnWithOtherCutsAndMicroBatches) {
  write({}, 60);
  EXPECT_THAT(find_missing(resumed({.cuts = {"layer2", "fc"},
                                    .num_micro_batches = 8,
                                    .schedule = ScheduleName::all_forward_then_backward,
                                    .checkpoint_activations = true}),
                           3, kSeed),
              IsEmpty());
}

TEST_F(PipelineResume, IsRefusedWithTheFirstDifference) {
  EXPECT_THAT(one(resumed(), 2, Kind::here), HasSubstr("there is no checkpoint"));
  write({}, 61);
  EXPECT_THAT(one(resumed(), 2, Kind::here), HasSubstr("step 61, beyond batches = 60; raise batches"));
  write({.model = ModelName::mlp, .cuts = {"fc2"}}, 62);
  EXPECT_THAT(one(resumed({.batches = 100}), 2, Kind::here),
              AllOf(HasSubstr("resume: "), HasSubstr("model = mlp, here it is resnet18")));
  EXPECT_THAT(one(resumed({.model = ModelName::mlp, .mlp = {.hidden = {4, 5}}, .cuts = {"fc2"}, .batches = 100}), 2,
                  Kind::here),
              HasSubstr("mlp.hidden = [256, 128, 64], here it is [4, 5]"));
  EXPECT_THAT(
      one(resumed({.model = ModelName::mlp, .mlp = {.dropout = 0.5}, .cuts = {"fc2"}, .batches = 100}), 2, Kind::here),
      HasSubstr("mlp.dropout = 0.0, here it is 0.5"));
}

}  // namespace
}  // namespace caftan::pipeline::pipeline_requirements_test
