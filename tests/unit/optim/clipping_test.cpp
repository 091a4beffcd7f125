#include "caftan/optim/clipping.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace caftan::optim::clipping_test {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(Clipping, TheNormIsSummedInDouble) {
  // In float 2^24 + 1 is 2^24: the small elements would be lost.
  const Tensors gradients{at::full({1}, 4096.0, at::kFloat), at::full({1000}, 1.0, at::kFloat)};
  EXPECT_EQ(squared_norm(gradients), 4096.0 * 4096.0 + 1000.0);
}

TEST(Clipping, TheNormDoesNotDependOnTheNumberOfThreads) {
  const Tensors gradients{at::randn({300, 701}), at::randn({17})};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = squared_norm(gradients);
  at::set_num_threads(4);
  EXPECT_EQ(squared_norm(gradients), one);
  at::set_num_threads(threads);
}

TEST(Clipping, TheNormTakesEveryKindOfGradient) {
  const at::Tensor twice = at::tensor({1, 1}, at::kLong).view({1, 2});
  const at::Tensor sparse = at::sparse_coo_tensor(twice, at::tensor({1.0, 2.0}), {4});
  EXPECT_EQ(squared_norm(Tensors{sparse}), 9.0) << "entries of one place are one element";
  const at::Tensor complex = at::complex(at::tensor({3.0}), at::tensor({4.0}));
  EXPECT_EQ(squared_norm(Tensors{complex}), 25.0);
  const at::Tensor strided = at::tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2}).t();
  EXPECT_EQ(squared_norm(Tensors{strided, at::Tensor()}), 30.0);
  EXPECT_EQ(squared_norm(Tensors{at::full({3}, 2.0, at::kBFloat16)}), 12.0);
}

TEST(Clipping, TheScaleIsTorchs) {
  EXPECT_EQ(clip_scale(4.0, 1.0), 1.0 / (2.0 + 1e-6));
  EXPECT_EQ(clip_scale(0.25, 1.0), 1.0) << "gradients are never made larger";
  EXPECT_EQ(clip_scale(std::numeric_limits<double>::infinity(), 1.0), 0.0);
  EXPECT_TRUE(std::isnan(clip_scale(std::nan(""), 1.0)));
}

TEST(Clipping, NothingIsModified) {
  const at::Tensor gradient = at::tensor({-3.0, 0.5, 3.0});
  const Tensors gradients{gradient, at::Tensor()};
  const Tensors limited = clipped_by_value(gradients, 1.0);
  EXPECT_TRUE(limited[0].equal(at::tensor({-1.0, 0.5, 1.0})));
  EXPECT_FALSE(limited[1].defined());
  EXPECT_TRUE(scaled(gradients, 0.5)[0].equal(at::tensor({-1.5, 0.25, 1.5})));
  EXPECT_TRUE(scaled(gradients, 1.0)[0].is_same(gradient)) << "nothing to do, nothing copied";
  EXPECT_TRUE(gradient.equal(at::tensor({-3.0, 0.5, 3.0})));
}

TEST(Clipping, SparseGradientsAreLimitedAfterTheirEntriesAreSummed) {
  const at::Tensor twice = at::tensor({2, 2}, at::kLong).view({1, 2});
  const at::Tensor sparse = at::sparse_coo_tensor(twice, at::tensor({0.75, 0.75}), {4});
  const at::Tensor limited = clipped_by_value(Tensors{sparse}, 1.0)[0];
  EXPECT_TRUE(limited.is_sparse());
  EXPECT_TRUE(limited.to_dense().equal(at::tensor({0.0, 0.0, 1.0, 0.0})));
}

}  // namespace
}  // namespace caftan::optim::clipping_test
