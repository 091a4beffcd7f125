// States of modules: cut into chunks, compared, put together again; and what a module of either kind lists.
#include "caftan/nn/internal/module_state.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/nn/served_module.hpp"

namespace caftan::nn::module_state_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StateDict numbers() {
  return {
      {"a", at::arange(10, at::kFloat)}, {"none", at::zeros({0, 3})}, {"b", at::arange(6, at::kDouble).view({2, 3})}};
}

TEST(ModuleState, MD7_NoChunkHasMoreBytesThanItMay) {
  const StateDict state = numbers();  // 40 bytes and 48 bytes
  for (const std::uint64_t bytes : {0U, 1U, 8U, 17U, 24U, 88U, 1000U}) {
    std::uint64_t next_tensor = 0;
    std::uint64_t next = 0;
    for (const Chunk& chunk : cut(state, bytes)) {
      std::uint64_t size = 0;
      for (const Piece& piece : chunk) {
        size += piece.count * (piece.tensor == 0 ? 4 : 8);
        if (piece.tensor != next_tensor) {
          EXPECT_EQ(piece.tensor, 2U);
          EXPECT_EQ(next, 10U);
          next_tensor = piece.tensor;
          next = 0;
        }
        EXPECT_EQ(piece.begin, next);
        next += piece.count;
      }
      EXPECT_LE(size, std::max<std::uint64_t>(bytes, 8)) << bytes;
    }
    EXPECT_EQ(next_tensor, 2U);
    EXPECT_EQ(next, 6U) << bytes;
  }
  EXPECT_EQ(cut(state, 88).size(), 1U);
}

TEST(ModuleState, MD8_WhatWasCutIsPutTogetherInAnyOrder) {
  const StateDict state = numbers();
  StagedState staged(make_blank(describe(state).value()).value());
  std::vector<Chunk> chunks = cut(state, 17);
  std::reverse(chunks.begin(), chunks.end());
  for (const Chunk& chunk : chunks) {
    const Result<StateDict> early = StagedState(make_blank(describe(state).value()).value()).release();
    EXPECT_EQ(early.error().code(), Errc::bad_arguments);
    ASSERT_TRUE(staged.put(chunk, read_chunk(state, chunk).value()));
  }
  const StateDict taken = staged.release().value();
  ASSERT_EQ(taken.size(), state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(taken[i].name, state[i].name);
    EXPECT_TRUE(at::equal(taken[i].tensor, state[i].tensor)) << i;
  }
  EXPECT_THAT(staged.release().error().text(), HasSubstr("taken already"));
  EXPECT_FALSE(staged.put({{0, 0, 1}}, {at::zeros({1})}));
}

TEST(ModuleState, MD8_NoStateIsTakenBeforeItIsWhole) {
  StagedState staged(make_blank(describe(numbers()).value()).value());
  ASSERT_TRUE(staged.put({{0, 0, 10}, {2, 0, 2}}, {at::zeros({10}), at::zeros({2}, at::kDouble)}));
  EXPECT_THAT(staged.release().error().text(), HasSubstr("4 elements"));
  ASSERT_TRUE(staged.put({{2, 2, 4}}, {at::zeros({4}, at::kDouble)}));
  EXPECT_TRUE(staged.release());
}

TEST(ModuleState, MD8_ElementsComeOnceAndFitTheirPiece) {
  StagedState staged(make_blank(describe(numbers()).value()).value());
  ASSERT_TRUE(staged.put({{0, 2, 3}}, {at::zeros({3})}));
  const std::vector<std::pair<Piece, at::Tensor>> wrong = {
      {{0, 2, 3}, at::zeros({3})},                  // the same again
      {{0, 4, 2}, at::zeros({2})},                  // begins in it
      {{0, 0, 3}, at::zeros({3})},                  // ends in it
      {{0, 5, 6}, at::zeros({6})},                  // beyond the tensor
      {{0, ~std::uint64_t{0}, 2}, at::zeros({2})},  // wraps around
      {{1, 0, 0}, at::zeros({0})},                  // no elements
      {{3, 0, 1}, at::zeros({1})},                  // no such tensor
      {{0, 5, 2}, at::zeros({3})},                  // another number of values
      {{0, 5, 2}, at::zeros({2}, at::kDouble)},     // another dtype
  };
  for (const auto& [piece, values] : wrong) {
    const Result<void> put = staged.put({piece}, {values});
    ASSERT_FALSE(put) << piece.tensor << " " << piece.begin << " " << piece.count;
    EXPECT_EQ(put.error().code(), Errc::bad_arguments);
  }
  EXPECT_FALSE(staged.put({{0, 5, 2}}, {}));
  EXPECT_TRUE(staged.put({{0, 0, 2}, {0, 5, 5}}, {at::zeros({2}), at::zeros({5})}));
}

TEST(ModuleState, MD9_EachDifferenceIsNamed) {
  const std::vector<TensorInfo> own = describe(numbers()).value();
  EXPECT_TRUE(check_fits(own, own));
  EXPECT_TRUE(check_fits({own[2], own[0], own[1]}, own));
  const StateDict other = {{"a", at::zeros({9})},
                           {"b", at::zeros({2, 3}, at::kLong)},
                           {"extra", at::zeros({1})},
                           {"b", at::zeros({2, 3}, at::kDouble)}};
  const Error error = check_fits(describe(other).value(), own).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("'a' is Float [9], that of the module Float [10]"));
  EXPECT_THAT(error.text(), HasSubstr("'b' is Long [2, 3], that of the module Double [2, 3]"));
  EXPECT_THAT(error.text(), HasSubstr("'b' is given twice"));
  EXPECT_THAT(error.text(), HasSubstr("the module has no 'extra'"));
  EXPECT_THAT(error.text(), HasSubstr("'none' is missing"));
  EXPECT_THAT(error.text(), Not(HasSubstr("more differences")));
  const std::vector<TensorInfo> many(30, {"x", {1}, 6});
  EXPECT_THAT(check_fits(many, own).error().text(), HasSubstr("more differences"));
}

TEST(ModuleState, WhatCannotTravelIsNamed) {
  EXPECT_THAT(describe({{"gone", at::Tensor()}}).error().text(), HasSubstr("'gone'"));
  const Error sparse = describe({{"table", at::zeros({2, 2}).to_sparse()}}).error();
  EXPECT_EQ(sparse.code(), Errc::unsupported);
  EXPECT_THAT(sparse.text(), HasSubstr("'table'"));
}

TEST(ModuleState, DescriptionsOfAPeerAreChecked) {
  for (const std::int32_t dtype : {-1, 12, 1000}) {  // 12 is quantized
    EXPECT_EQ(make_blank({{"x", {2}, dtype}}).error().code(), Errc::malformed_payload) << dtype;
  }
  EXPECT_FALSE(make_blank({{"x", {-2}, 6}}));
}

class Plain {
 public:
  std::vector<NamedTensor> named_parameters() const { return {{"w", weight_}}; }

 private:
  at::Tensor weight_ = at::zeros({3});
};
class Empty {};

TEST(ServedModule, ListsWhatAPlainClassNames) {
  const ServedModule module(std::make_shared<Plain>());
  ASSERT_EQ(module.tensors(TensorKind::parameter).size(), 1U);
  EXPECT_EQ(module.tensors(TensorKind::parameter)[0].name, "w");
  EXPECT_TRUE(module.tensors(TensorKind::buffer).empty());
  EXPECT_TRUE(ServedModule(std::make_shared<Empty>()).tensors(TensorKind::parameter).empty());
}

TEST(ServedModule, MD1_IsClaimedOnce) {
  ServedModule module(std::make_shared<Empty>());
  EXPECT_TRUE(module.claim());
  EXPECT_FALSE(module.claim());
}

TEST(ServedModule, NamesAConstructorByItsTypes) {
  EXPECT_EQ(detail::module_constructor_name("net", "Net(int, std::map<int, Tensor>)"),
            "net.new:int,std::map<int,Tensor>");
  EXPECT_EQ(detail::module_constructor_name("net", "Net()"), "net.new:");
}

}  // namespace
}  // namespace caftan::nn::module_state_test
