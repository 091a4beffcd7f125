#include "caftan/nn/dropout.hpp"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

namespace caftan::nn::dropout_test {
namespace {

Dropout make_dropout(double probability, std::uint64_t seed = 3) { return Dropout::make(probability, seed).value(); }

TEST(Dropout, DropsTheStatedShareAndKeepsTheMean) {
  const at::Tensor ones = at::ones({500, 400});
  for (const double probability : {0.1, 0.5, 0.8}) {
    const at::Tensor dropped = make_dropout(probability).forward(ones, 0, 0);
    EXPECT_NEAR((dropped == 0).to(at::kFloat).mean().item<double>(), probability, 0.005);
    EXPECT_NEAR(dropped.mean().item<double>(), 1.0, 0.02);
    EXPECT_FLOAT_EQ(dropped.max().item<float>(), static_cast<float>(1 / (1 - probability)));
  }
}

TEST(Dropout, IsTheSameForTheSameKeyWhateverWasDrawnBetween) {
  const Dropout dropout = make_dropout(0.5);
  const at::Tensor input = at::linspace(1, 2, 1000);
  const at::Tensor first = dropout.forward(input, 7, 1);
  for (std::uint64_t call = 2; call < 5; ++call) static_cast<void>(dropout.forward(input, 7, call));
  EXPECT_TRUE(make_dropout(0.5).forward(input, 7, 1).equal(first));
  EXPECT_FALSE(dropout.forward(input, 8, 1).equal(first));
  EXPECT_FALSE(dropout.forward(input, 7, 2).equal(first));
  EXPECT_FALSE(make_dropout(0.5, 4).forward(input, 7, 1).equal(first));
}

TEST(Dropout, APartOfABatchGetsItsPartOfTheMask) {
  const Dropout dropout = make_dropout(0.5);
  const at::Tensor batch = at::linspace(1, 2, 70).view({10, 7});
  const at::Tensor whole = dropout.forward(batch, 7, 1);
  for (const std::int64_t first : {0, 1, 3, 8}) {
    const at::Tensor part = dropout.forward(batch.slice(0, first, 10), 7, 1, static_cast<std::uint64_t>(first * 7));
    EXPECT_TRUE(part.equal(whole.slice(0, first, 10))) << first;
  }
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  const at::Tensor input = at::ones({1 << 16});
  const at::Tensor many = make_dropout(0.3).forward(input, 0, 0);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = make_dropout(0.3).forward(input, 0, 0);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(many));
}

TEST(Dropout, PassesTheGradientOfWhatItKept) {
  at::Tensor input = at::ones({100});
  input.requires_grad_(true);
  const at::Tensor output = make_dropout(0.5).forward(input, 0, 0);
  output.sum().backward();
  EXPECT_TRUE(input.grad().equal(output.detach()));  // of ones
}

TEST(Dropout, OfProbabilityZeroIsTheInput) {
  const at::Tensor input = at::ones({3});
  EXPECT_TRUE(make_dropout(0).forward(input, 0, 0).is_same(input));
}

TEST(Dropout, KeepsTheDtype) {
  const at::Tensor input = at::full({64}, 1, at::kDouble);
  const at::Tensor output = make_dropout(0.5).forward(input, 0, 0);
  EXPECT_EQ(output.scalar_type(), at::kDouble);
  EXPECT_TRUE(output.to(at::kFloat).equal(make_dropout(0.5).forward(input.to(at::kFloat), 0, 0)));
}

TEST(Dropout, RefusesWhatIsNoProbability) {
  for (const double bad : {-0.1, 1.0, 2.0, std::nan("")}) {
    EXPECT_EQ(Dropout::make(bad, 0).error().code(), Errc::bad_arguments);
  }
}

}  // namespace
}  // namespace caftan::nn::dropout_test
