// The two parts of the model, beside torch's own.
#include "hybrid_ddp/model.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace caftan::hybrid_ddp::model_test {
namespace {

TEST(WordBags, ABagIsTheSumOfItsWords) {
  const WordBags bags(5, 3, false, 7);
  const at::Tensor weight = bags.named_parameters().front().tensor.detach();
  const at::Tensor sums = bags.forward(at::tensor({4, 1, 1, 0}, at::kLong), at::tensor({0, 3}, at::kLong));
  EXPECT_TRUE(sums[0].allclose(weight[4] + weight[1] * 2));
  EXPECT_TRUE(sums[1].allclose(weight[0]));
  EXPECT_THROW(WordBags(0, 3, false, 7), std::invalid_argument);
}

TEST(WordBags, ItsGradientIsSparseWhereAskedFor) {
  for (const bool sparse : {false, true}) {
    const WordBags bags(5, 3, sparse, 7);
    bags.forward(at::tensor({4, 1}, at::kLong), at::tensor({0}, at::kLong)).sum().backward();
    EXPECT_EQ(bags.named_parameters().front().tensor.grad().is_sparse(), sparse);
  }
}

TEST(DenseLayer, ParametersAreAFunctionOfTheSeed) {
  const DenseLayer one(4, 2, 1), same(4, 2, 1), other(4, 2, 2);
  EXPECT_TRUE(one.named_parameters()[0].tensor.equal(same.named_parameters()[0].tensor));
  EXPECT_FALSE(one.named_parameters()[0].tensor.equal(other.named_parameters()[0].tensor));
}

}  // namespace
}  // namespace caftan::hybrid_ddp::model_test
