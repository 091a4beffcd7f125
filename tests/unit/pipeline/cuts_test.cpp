// Where a model and a batch are cut, and what is refused with the ways out.
#include "pipeline/cuts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/micro_batches.hpp"

namespace caftan::pipeline::cuts_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ranges_of(const MasterConfig& config) {
  const auto cut = cut_model(config);
  if (!cut) return cut.error().text();
  std::string text;
  for (const auto& range : *cut) text += (text.empty() ? "" : " | ") + range_name(unit_names(config), range);
  return text;
}

TEST(Cuts, NameTheLayerWithWhichAStageBegins) {
  EXPECT_EQ(ranges_of({.model = ModelName::resnet50, .cuts = {"layer3"}}), "conv1..layer2.3 | layer3.0..fc");
  EXPECT_EQ(ranges_of({.model = ModelName::resnet18, .cuts = {"layer1", "layer3.1", "fc"}}),
            "conv1 | layer1.0..layer3.0 | layer3.1..layer4.1 | fc");
  EXPECT_EQ(ranges_of({.model = ModelName::mlp, .mlp = {.hidden = {8, 8, 8}}, .cuts = {"fc2", "fc4"}}),
            "fc1 | fc2..fc3 | fc4");
}

TEST(Cuts, ThatCannotBeAreNamedWithThoseThatCan) {
  EXPECT_THAT(ranges_of({.model = ModelName::mlp, .mlp = {.hidden = {8}}, .cuts = {"layer3"}}),
              HasSubstr("cuts: there is no layer \"layer3\"; mlp can be cut before: fc2"));
  EXPECT_THAT(ranges_of({.cuts = {"layer5"}}),
              HasSubstr("resnet18 can be cut before: layer1, layer1.1, layer2, layer2.1, layer3, layer3.1, layer4, "
                        "layer4.1, fc"));
  EXPECT_THAT(ranges_of({.cuts = {}}), HasSubstr("cuts is empty, a pipeline has two stages"));
  EXPECT_THAT(ranges_of({.cuts = {"conv1"}}), HasSubstr("nothing is left for the stage before \"conv1\""));
  EXPECT_THAT(ranges_of({.cuts = {"layer3", "layer3"}}), HasSubstr("nothing is left for the stage before \"layer3\""));
  EXPECT_THAT(ranges_of({.cuts = {"layer3", "layer2"}}), HasSubstr("cuts stand in the order of the layers"));
}

TEST(MicroBatches, HaveEachRowOnce) {
  EXPECT_THAT(cut_batch({.batch = 10}).value(), ElementsAre(Rows{0, 10}));
  EXPECT_THAT(cut_batch({.batch = 10, .micro_batch_size = 4}).value(),
              ElementsAre(Rows{0, 4}, Rows{4, 8}, Rows{8, 10}));
  EXPECT_THAT(cut_batch({.batch = 10, .num_micro_batches = 4}).value(),
              ElementsAre(Rows{0, 3}, Rows{3, 6}, Rows{6, 8}, Rows{8, 10}));
  EXPECT_THAT(cut_batch({.batch = 2, .num_micro_batches = 2}).value(), ElementsAre(Rows{0, 1}, Rows{1, 2}));
}

TEST(MicroBatches, ThatCannotBeAreNamed) {
  EXPECT_EQ(cut_batch({.batch = 10, .micro_batch_size = 11}).error().text(),
            "micro_batch_size = 11, the batch has 10 images; lower it, or raise batch");
  EXPECT_EQ(cut_batch({.batch = 10, .num_micro_batches = 11}).error().text(),
            "num_micro_batches = 11, the batch has 10 images; lower it, or raise batch");
  EXPECT_THAT(cut_batch({.batch = 10, .micro_batch_size = 5, .num_micro_batches = 2}).error().text(),
              HasSubstr("say the same thing twice"));
}

}  // namespace
}  // namespace caftan::pipeline::cuts_test
