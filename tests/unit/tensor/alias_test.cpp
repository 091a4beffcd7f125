/// Tensors of one message over one storage keep sharing it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tensor_samples.hpp"

namespace caftan::tensor::alias_test {
namespace {

TEST(TensorAlias, ViewsOfOneStorageShareOneAtTheReceiver) {
  for (const std::int64_t columns : {6, 6000}) {
    const at::Tensor base = at::zeros({4, columns});
    const std::vector<DecodedTensor> made = travel({base, base[1], base.t()});
    ASSERT_EQ(made.size(), 3u);
    made[0].tensor[1].fill_(5);
    EXPECT_TRUE(at::equal(made[1].tensor, at::full({columns}, 5.0f)));
    EXPECT_TRUE(at::equal(made[2].tensor, made[0].tensor.t()));
    EXPECT_TRUE(made[0].tensor.is_alias_of(made[1].tensor));
  }
}

TEST(TensorAlias, OverlappingSlicesOverlapAtTheSamePlace) {
  const at::Tensor base = at::arange(10000);
  const std::vector<DecodedTensor> made = travel({base.slice(0, 100, 5000), base.slice(0, 4000, 9000)});
  made[1].tensor[0].fill_(-1);
  EXPECT_EQ(made[0].tensor[3900].item<std::int64_t>(), -1);
}

TEST(TensorAlias, OtherDtypesOverOneStorageShareItToo) {
  const at::Tensor bytes = at::arange(64, at::kByte);
  const std::vector<DecodedTensor> made = travel({bytes.slice(0, 3, 60), bytes.view(at::kInt).slice(0, 2, 9)});
  EXPECT_EQ(difference(bytes.slice(0, 3, 60), made[0].tensor), "");
  EXPECT_EQ(difference(bytes.view(at::kInt).slice(0, 2, 9), made[1].tensor), "");
  made[1].tensor.fill_(0);
  EXPECT_EQ(made[0].tensor.slice(0, 5, 33).sum().item<std::int64_t>(), 0);
}

TEST(TensorAlias, TensorsOfDifferentStoragesDoNotShareOne) {
  const std::vector<DecodedTensor> made = travel({at::zeros({4}), at::zeros({4})});
  EXPECT_FALSE(made[0].tensor.is_alias_of(made[1].tensor));
  made[0].tensor.fill_(1);
  EXPECT_EQ(made[1].tensor.sum().item<float>(), 0);
}

TEST(TensorAlias, SparselyUsedButOverlappingTensorsAreNotCompacted) {
  const at::Tensor base = at::arange(100000, at::kFloat).view({1000, 100});
  const at::Tensor column = base.slice(1, 3, 4);
  const std::vector<DecodedTensor> made = travel({column, column.slice(0, 0, 500)});
  made[0].tensor.fill_(-1);
  EXPECT_EQ(made[1].tensor.sum().item<float>(), -500);
}

TEST(TensorAlias, FarApartPartsOfOneStorageTravelWithoutWhatLiesBetween) {
  const at::Tensor base = at::arange(1000000, at::kFloat);
  const std::vector<at::Tensor> ends{base.slice(0, 0, 10000), base.slice(0, 990000, 1000000)};
  const Result<EncodedTensors> encoded = encode_tensors(ends);
  std::size_t bytes = 0;
  for (const wire::Segment& segment : encoded->segments) bytes += segment.size;
  EXPECT_EQ(bytes, 80000u);
  const std::vector<DecodedTensor> made = travel(ends);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(difference(ends[i], made[i].tensor), "");
}

TEST(TensorAlias, H4_FarApartPartsOfOneStorageShareOneAtTheReceiver) {
  const at::Tensor base = at::arange(1000000, at::kFloat);
  const at::Tensor whole = base.view(at::kByte);
  const std::vector<DecodedTensor> made =
      travel({base.slice(0, 0, 10000), base.slice(0, 500000, 500001).expand({7}), whole.slice(0, 3999990, 4000000)});
  ASSERT_EQ(made.size(), 3u);
  EXPECT_TRUE(made[0].tensor.is_alias_of(made[1].tensor) && made[0].tensor.is_alias_of(made[2].tensor));
  EXPECT_EQ(difference(base.slice(0, 500000, 500001).expand({7}), made[1].tensor), "");
  EXPECT_EQ(difference(whole.slice(0, 3999990, 4000000), made[2].tensor), "");
  EXPECT_EQ(made[0].tensor.storage().nbytes(), 40000u + 16 + 10) << "without what lies between";
}

TEST(TensorAlias, DA20_RecordedTensorsOverOneStorageShareAVersionCounter) {
  const at::Tensor base = at::ones({8}).requires_grad_() * 1;
  const std::vector<DecodedTensor> made =
      travel({base, base.slice(0, 2, 6), at::ones({8}).requires_grad_() * 1}, {1, 1, 1});
  made[0].tensor.add_(1);
  EXPECT_EQ(made[0].tensor._version(), 1);
  EXPECT_EQ(made[1].tensor._version(), 1);
  EXPECT_EQ(made[2].tensor._version(), 0);
}

TEST(TensorAlias, A3_DA20_UnrecordedTensorsOverOneStorageShareItsVersionCounterToo) {
  const at::Tensor base = at::ones({8});
  const std::vector<DecodedTensor> made = travel({base, base.slice(0, 2, 6), at::ones({8}), at::Tensor()});
  made[0].tensor.add_(1);
  EXPECT_EQ(made[1].tensor[0].item<float>(), 2);
  EXPECT_EQ(made[1].tensor._version(), 1);
  EXPECT_EQ(made[2].tensor._version(), 0);
}

TEST(TensorAlias, A3_DA20_ARecordedTensorSharesTheVersionCounterOfAnUnrecordedOne) {
  const at::Tensor h = at::ones({8}).requires_grad_() * 1;
  const std::vector<DecodedTensor> made = travel({h, h.detach()}, {1, 0});
  made[1].tensor.add_(1);
  EXPECT_EQ(made[0].tensor._version(), 1);
}

TEST(TensorAlias, SparseComponentsMayShareStorageWithDenseTensors) {
  const at::Tensor values = at::ones({3});
  const at::Tensor sparse = at::sparse_coo_tensor(at::tensor({0, 1, 2}, at::kLong).view({1, 3}), values, {3});
  const std::vector<DecodedTensor> made = travel({values, sparse});
  made[0].tensor.fill_(4);
  EXPECT_TRUE(at::equal(made[1].tensor._values(), at::full({3}, 4.0f)));
}

}  // namespace
}  // namespace caftan::tensor::alias_test
