#include "caftan/nn/fill_uniform.hpp"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace caftan::nn::fill_uniform_test {
namespace {

TEST(FillUniform, FillsEachElementFromItsPositionWhateverTheShape) {
  const base::RandomKey key{.seed = 5};
  at::Tensor small = at::empty({7});
  at::Tensor large = at::empty({3, 5});
  const auto version = large._version();
  fill_uniform(small, key, -0.1, 0.1);
  fill_uniform(large, key, -0.1, 0.1);
  EXPECT_GT(large._version(), version);
  EXPECT_TRUE(large.view(-1).narrow(0, 0, 7).equal(small));
  EXPECT_FLOAT_EQ(small[5].item<float>(), -0.1F + 0.2F * base::random_uniform(key, 5));
}

TEST(FillUniform, IsUniform) {
  at::Tensor values = at::empty({100000});
  fill_uniform(values, {.seed = 1}, 2, 4);
  EXPECT_GE(values.min().item<double>(), 2.0);
  EXPECT_LT(values.max().item<double>(), 4.0);
  EXPECT_NEAR(values.mean().item<double>(), 3.0, 0.01);
  EXPECT_NEAR(values.var().item<double>(), 4.0 / 12, 0.01);
}

}  // namespace
}  // namespace caftan::nn::fill_uniform_test
