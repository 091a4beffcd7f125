#include "caftan/autograd/gradient_book.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstring>

#include "caftan/tensor/codec.hpp"

namespace caftan::autograd::test::gradient_book_test {
namespace {

at::Tensor sparse_row(double value) {
  return at::sparse_coo_tensor(at::ones({1, 1}, at::kLong), at::full({1, 2}, value), {4, 2});
}

class GradientBookTest : public ::testing::Test {
 protected:
  const c10::AutoGradMode no_graph_{false};
  const at::Tensor leaf_ = at::zeros({4, 2}).set_requires_grad(true);
  GradientBook book_;
};

TEST_F(GradientBookTest, Row19_03_TakesOverWhatHasNoOtherHolder) {
  at::Tensor gradient = at::ones({4, 2});
  const void* memory = gradient.const_data_ptr();
  book_.add(leaf_, std::move(gradient));
  EXPECT_EQ(book_.of(leaf_).const_data_ptr(), memory);
}

TEST_F(GradientBookTest, Row19_03_CopiesWhatIsSharedOrHasOtherStrides) {
  const at::Tensor shared = at::ones({4, 2});
  book_.add(leaf_, at::Tensor(shared));
  EXPECT_NE(book_.of(leaf_).const_data_ptr(), shared.const_data_ptr());
  // A view whose memory has a second reference is copied; libtorch itself would keep the view.
  const at::Tensor other = at::zeros({4, 2}).set_requires_grad(true);
  book_.add(other, shared.view({4, 2}));
  EXPECT_NE(book_.of(other).const_data_ptr(), shared.const_data_ptr());
  const at::Tensor third = at::zeros({4, 2}).set_requires_grad(true);
  book_.add(third, at::ones({2, 4}).t());
  EXPECT_TRUE(book_.of(third).is_contiguous());
}

TEST_F(GradientBookTest, Row19_04_SharesTheBuffersOfASparseGradientOnlyAtFirst) {
  at::Tensor gradient = sparse_row(3);
  const void* memory = gradient._values().const_data_ptr();
  book_.add(leaf_, std::move(gradient));
  EXPECT_EQ(book_.of(leaf_)._values().const_data_ptr(), memory);
  for (int i = 0; i < 10; ++i) book_.add(leaf_, sparse_row(1));
  EXPECT_TRUE(book_.of(leaf_).is_sparse());
  EXPECT_EQ(book_.of(leaf_).to_dense()[1][0].item<float>(), 13);
}

TEST_F(GradientBookTest, RowX01_SparseThenDenseIsTheirSum) {
  book_.add(leaf_, sparse_row(3));
  book_.add(leaf_, at::ones({4, 2}));
  EXPECT_FALSE(book_.of(leaf_).is_sparse());
  EXPECT_EQ(book_.of(leaf_)[1][0].item<float>(), 4);
  book_.add(leaf_, sparse_row(1));
  EXPECT_EQ(book_.of(leaf_)[1][0].item<float>(), 5);
}

TEST_F(GradientBookTest, ATensorHandedOutEarlierKeepsItsValues) {
  book_.add(leaf_, at::ones({4, 2}));
  const at::Tensor handed_out = book_.of(leaf_);
  const at::Tensor alias = handed_out.view({8});
  book_.add(leaf_, at::ones({4, 2}));
  EXPECT_TRUE(at::equal(handed_out, at::ones({4, 2})));
  EXPECT_TRUE(at::equal(book_.of(leaf_), at::full({4, 2}, 2.0)));
  // The sum is a new tensor in the book and has no second reference: the next gradient is added in place.
  const void* memory = book_.of(leaf_).const_data_ptr();
  book_.add(leaf_, at::ones({4, 2}));
  EXPECT_EQ(book_.of(leaf_).const_data_ptr(), memory);
  EXPECT_TRUE(at::equal(alias, at::ones({8})));

  GradientBook sparse;
  sparse.add(leaf_, sparse_row(1));
  const at::Tensor handed_out_sparse = sparse.of(leaf_);
  sparse.add(leaf_, sparse_row(1));
  EXPECT_EQ(handed_out_sparse.to_dense()[1][0].item<float>(), 1);
}

TEST_F(GradientBookTest, GradientsFromAMessageOwnTheirMemory) {
  const auto travel = [](const std::vector<at::Tensor>& tensors) {
    const auto encoded = tensor::encode_tensors(tensors);
    const auto layout = tensor::TensorLayout::parse(encoded->table, {});
    wire::BlockPool pool;
    std::vector<wire::Block> blocks;
    for (const wire::Segment& segment : encoded->segments) {
      blocks.push_back(std::move(pool.take(segment.size).value()));
      std::memcpy(blocks.back().data(), segment.data, segment.size);
    }
    return *layout->build(std::move(blocks));
  };
  // Small tensors of one message share a block of memory. The book copies the gradient, because the whole block would
  // stay alive for it.
  std::vector<tensor::DecodedTensor> small = travel({at::ones({4, 2}), at::ones({4, 2})});
  const void* memory = small[0].tensor.const_data_ptr();
  book_.add(leaf_, std::move(small[0].tensor));
  EXPECT_NE(book_.of(leaf_).const_data_ptr(), memory);
  // A large tensor has a block for itself, which the book keeps.
  const at::Tensor large = at::zeros({200, 100}).set_requires_grad(true);
  std::vector<tensor::DecodedTensor> alone = travel({at::ones({200, 100})});
  memory = alone[0].tensor.const_data_ptr();
  book_.add(large, std::move(alone[0].tensor));
  EXPECT_EQ(book_.of(large).const_data_ptr(), memory);
}

TEST_F(GradientBookTest, MergesInOrderAndCountsBytes) {
  GradientBook staged;
  const at::Tensor other = at::zeros({2}).set_requires_grad(true);
  staged.add(other, at::ones({2}));
  staged.add(leaf_, at::ones({4, 2}));
  book_.add(leaf_, at::ones({4, 2}));
  book_.merge(std::move(staged));
  ASSERT_EQ(book_.entries().size(), 2u);
  EXPECT_TRUE(book_.entries()[0].leaf.is_same(leaf_));
  EXPECT_TRUE(at::equal(book_.of(leaf_), at::full({4, 2}, 2.0)));
  EXPECT_TRUE(at::equal(book_.of(other), at::ones({2})));
  EXPECT_EQ(book_.bytes(), 40u);
  EXPECT_FALSE(book_.of(at::ones({1})).defined());
  EXPECT_EQ(gradient_bytes(sparse_row(1)), 8u + 8u);
}

}  // namespace
}  // namespace caftan::autograd::test::gradient_book_test
