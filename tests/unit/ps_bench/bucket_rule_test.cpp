// What a server makes of gradients: averages are averages (the original's servers return sums), rounds take one
// gradient of each trainer, and a refused gradient changes nothing.
#include "ps_bench/bucket_rule.hpp"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::ps_bench::bucket_rule_test {
namespace {

using ::testing::HasSubstr;

const std::vector<ParameterShape> kShapes{{{3}}, {{2, 2}, true}};

/// A row of a [2, 2] table, `times` times over, not coalesced.
at::Tensor sparse(std::int64_t row, float value, int times = 1) {
  return at::_sparse_coo_tensor_unsafe(at::full({1, times}, row, at::kLong), at::full({times, 2}, value), {2, 2});
}
std::vector<at::Tensor> gradients(float value, std::int64_t row = 0) {
  return {at::full({3}, value), sparse(row, value)};
}
BucketRule rule_of(Rule rule, std::uint32_t trainers, std::uint32_t first = 0) {
  return {{.rule = rule, .trainers = {first, trainers}, .lr = 0.5},
          kShapes,
          {at::full({3}, 10.0F), at::full({2, 2}, 20.0F)}};
}

class AveragingRules : public ::testing::TestWithParam<Rule> {};
INSTANTIATE_TEST_SUITE_P(Both, AveragingRules, ::testing::Values(Rule::average_batch, Rule::average));

TEST_P(AveragingRules, GiveTheMeanAndNotTheSum) {
  BucketRule rule = rule_of(GetParam(), 3);
  std::vector<std::vector<at::Tensor>> sent{gradients(1, 0), gradients(2, 0), gradients(6, 1)};
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(rule.take(2, round, sent[2]).value());
    EXPECT_FALSE(rule.take(0, round, sent[0]).value());
    EXPECT_EQ(rule.arrived(), 2U);
    ASSERT_TRUE(rule.take(1, round, sent[1]).value());
    const auto mean = rule.finish().value();
    EXPECT_EQ(rule.arrived(), 0U);
    EXPECT_TRUE(at::equal(mean[0], at::full({3}, 3.0F))) << mean[0];
    ASSERT_TRUE(mean[1].is_sparse() && mean[1].is_coalesced());
    EXPECT_TRUE(at::equal(mean[1].to_dense(), at::tensor({1.0F, 1.0F, 2.0F, 2.0F}).view({2, 2}))) << mean[1].to_dense();
  }
  EXPECT_TRUE(at::equal(sent[2][0], at::full({3}, 6.0F))) << "what has arrived is not written";
}

TEST_P(AveragingRules, OfOneTrainerGiveItsGradient) {
  BucketRule rule = rule_of(GetParam(), 1, 4);
  ASSERT_TRUE(rule.take(4, 0, {at::full({3}, 2.0F), sparse(1, 1, 2)}).value());
  const auto mean = rule.finish().value();
  EXPECT_TRUE(at::equal(mean[0], at::full({3}, 2.0F)));
  EXPECT_TRUE(mean[1].is_coalesced());
  EXPECT_TRUE(at::equal(mean[1].to_dense(), at::tensor({0.0F, 0.0F, 2.0F, 2.0F}).view({2, 2})));
}

TEST_P(AveragingRules, RefuseWhatIsNoPartOfTheRound) {
  BucketRule rule = rule_of(GetParam(), 2, 2);
  ASSERT_FALSE(rule.take(2, 0, gradients(1)).value());
  const auto refused = [&](std::uint32_t trainer, std::int64_t batch, std::vector<at::Tensor> of) {
    const auto taken = rule.take(trainer, batch, std::move(of));
    EXPECT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), Errc::bad_arguments);
    return taken.error().text();
  };
  EXPECT_THAT(refused(4, 0, gradients(1)), HasSubstr("trainer 4 is none of this server: it has 2 from 2 on"));
  EXPECT_THAT(refused(1, 0, gradients(1)), HasSubstr("trainer 1 is none"));
  EXPECT_THAT(refused(3, 1, gradients(1)), HasSubstr("a gradient of batch 1, the open round is 0"));
  EXPECT_THAT(refused(2, 0, gradients(1)), HasSubstr("a second gradient of batch 0"));
  EXPECT_THAT(refused(3, 0, {}), HasSubstr("another bucket or model"));
  EXPECT_THAT(refused(3, 0, {at::full({4}, 1.0F), sparse(0, 1)}), HasSubstr("another bucket"));
  EXPECT_THAT(refused(3, 0, {at::full({3}, 1.0, at::kDouble), sparse(0, 1)}), HasSubstr("another bucket"));
  EXPECT_THAT(refused(3, 0, {at::full({3}, 1.0F), at::zeros({2, 2})}), HasSubstr("another bucket"));
  EXPECT_THAT(refused(3, 0, {at::Tensor(), sparse(0, 1)}), HasSubstr("another bucket"));
  ASSERT_TRUE(rule.take(3, 0, gradients(3)).value());
  EXPECT_TRUE(at::equal(rule.finish().value()[0], at::full({3}, 2.0F))) << "refusals left no trace";
}

TEST(AverageBatch, AddsInTheOrderOfTheTrainersWhicheverCameFirst) {
  // 1e8 + 1 - 1e8 is 0 in float32 when the large ones come first and last, and 1 when they stand together.
  const std::vector<float> values{1e8F, -1e8F, 3.0F};
  for (const std::vector<std::uint32_t>& order : {std::vector<std::uint32_t>{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
    BucketRule rule = rule_of(Rule::average_batch, 3);
    for (const std::uint32_t trainer : order) (void)rule.take(trainer, 0, gradients(values[trainer])).value();
    EXPECT_TRUE(at::equal(rule.finish().value()[0], at::full({3}, 1.0F)));
  }
}

TEST(Immediate, MakesAStepOfEachGradientAtOnce) {
  BucketRule rule = rule_of(Rule::immediate, 2);
  ASSERT_TRUE(rule.take(1, 7, gradients(2, 0)).value()) << "of any batch, without the other trainer";
  const auto first = rule.finish().value();
  EXPECT_TRUE(at::equal(first[0], at::full({3}, 9.0F)));
  EXPECT_TRUE(at::equal(first[1], at::tensor({19.0F, 19.0F, 20.0F, 20.0F}).view({2, 2})));
  ASSERT_TRUE(rule.take(1, 7, gradients(4, 1)).value());
  const auto second = rule.finish().value();
  EXPECT_TRUE(at::equal(second[0], at::full({3}, 7.0F)));
  EXPECT_TRUE(at::equal(second[1], at::tensor({19.0F, 19.0F, 18.0F, 18.0F}).view({2, 2})));
  EXPECT_TRUE(at::equal(first[0], at::full({3}, 9.0F))) << "a reply is not modified by later steps";
  EXPECT_FALSE(rule.take(2, 0, gradients(1))) << "none of its trainers";
}

}  // namespace
}  // namespace caftan::ps_bench::bucket_rule_test
