#include "caftan/nn/fill_normal.hpp"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace caftan::nn::fill_normal_test {
namespace {

TEST(FillNormal, FillsEachElementFromItsPositionWhateverTheShape) {
  const base::RandomKey key{.seed = 5};
  at::Tensor small = at::empty({7});
  at::Tensor large = at::empty({3, 5});
  const auto version = large._version();
  fill_normal(small, key, 1, 0.5);
  fill_normal(large, key, 1, 0.5);
  EXPECT_GT(large._version(), version);
  EXPECT_TRUE(large.view(-1).narrow(0, 0, 7).equal(small));
  at::Tensor other = at::empty({7});
  fill_normal(other, {.seed = 6}, 1, 0.5);
  EXPECT_FALSE(other.equal(small));
}

TEST(FillNormal, IsNormal) {
  at::Tensor values = at::empty({200000});
  fill_normal(values, {.seed = 1}, 3, 2);
  EXPECT_NEAR(values.mean().item<double>(), 3.0, 0.02);
  EXPECT_NEAR(values.std().item<double>(), 2.0, 0.02);
  const at::Tensor away = (values - 3).abs() / 2;
  EXPECT_NEAR(away.lt(1).to(at::kDouble).mean().item<double>(), 0.6827, 0.005);
  EXPECT_NEAR(away.lt(2).to(at::kDouble).mean().item<double>(), 0.9545, 0.003);
  EXPECT_LT(away.max().item<double>(), 5.9);
  // Neighbours are independent, also those that one pair of numbers gives.
  const at::Tensor pairs = ((values - 3) / 2).view({-1, 2});
  EXPECT_NEAR((pairs.select(1, 0) * pairs.select(1, 1)).mean().item<double>(), 0.0, 0.02);
}

}  // namespace
}  // namespace caftan::nn::fill_normal_test
