#include "caftan/tensor/codec.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "tensor_samples.hpp"

namespace caftan::tensor::codec_test {
namespace {

TEST(TensorCodec, EveryDtypeComesBackBitForBit) {
  for (const Sample& sample : every_dtype())
    EXPECT_EQ(difference(sample.tensor, travel_one(sample.tensor)), "") << sample.name;
}

TEST(TensorCodec, EveryShapeKeepsSizesAndStrides) {
  for (const at::ScalarType dtype : {at::kFloat, at::kLong, at::kComplexDouble, at::kHalf, at::kByte, at::kBool}) {
    const at::Tensor base = (at::arange(24) % 2).to(dtype).view({4, 6});
    for (const Sample& sample : every_shape(base)) {
      EXPECT_EQ(difference(sample.tensor, travel_one(sample.tensor)), "") << sample.name << " " << dtype;
    }
  }
}

TEST(TensorCodec, LargeTensorsKeepSizesAndStridesUnlessTheyHaveGaps) {
  const at::Tensor base = at::arange(24 * 4096, at::kFloat).view({4, 6, 4096});
  for (const at::Tensor& tensor : {base, base.transpose(0, 2), base.slice(2, 100, 4000), base[1].expand({3, 6, 4096}),
                                   base.slice(2, 0, 4096, 2), base.flatten().unfold(0, 4096, 1024)}) {
    EXPECT_EQ(difference(tensor, travel_one(tensor)), "") << tensor.sizes();
  }
  // The view has one of three values of `base`: the two others do not travel, and the received tensor is contiguous.
  const at::Tensor gaps = base.slice(2, 0, 4096, 3);
  const at::Tensor back = travel_one(gaps);
  EXPECT_TRUE(at::equal(back, gaps));
  EXPECT_TRUE(back.is_contiguous());
}

/// Returns the address of the first byte that is sent.
const void* sent_from(std::initializer_list<at::Tensor> tensors, SharedMemory shared) {
  return encode_tensors(std::span(tensors.begin(), tensors.size()), {}, shared)->segments.at(0).data;
}

TEST(TensorCodec, B6_OnlyMemoryThatSomethingElseHoldsIsCopied) {
  constexpr auto kCopy = SharedMemory::copy;
  const auto sent = [](at::Tensor tensor) {
    const void* const own = tensor.const_data_ptr();
    std::vector<at::Tensor> all;
    all.push_back(std::move(tensor));
    return encode_tensors(all, {}, kCopy)->segments.at(0).data == own;
  };
  EXPECT_TRUE(sent(at::ones({8192})));
  // The views that these functions return are the only references to the memory of their bases.
  const auto transposed = [] { return at::ones({8192}).view({2, 4096}).t(); };
  const auto part = [] { return at::ones({8192}).slice(0, 100).narrow(0, 0, 8000); };
  EXPECT_TRUE(sent(transposed()));
  EXPECT_TRUE(sent(part()));
  const at::Tensor kept = at::ones({8192});
  EXPECT_FALSE(sent(kept));
  EXPECT_FALSE(sent(kept.view({2, 4096})));
  EXPECT_FALSE(sent(kept.detach()));
  EXPECT_EQ(sent_from({kept}, SharedMemory::reference), kept.const_data_ptr());
  {
    at::Tensor base = at::ones({8192});
    const void* const own = base.const_data_ptr();
    std::vector<at::Tensor> both{base.view({2, 4096}), base.slice(0, 5)};
    both.push_back(std::move(base));
    EXPECT_EQ(encode_tensors(both, {}, kCopy)->segments.at(0).data, own) << "views and their base, in one message";
    const at::Tensor held = both[1];
    EXPECT_NE(encode_tensors(both, {}, kCopy)->segments.at(0).data, own);
  }
}

TEST(TensorCodec, H5_CopiedMemoryKeepsStridesOfEveryShapeAndDtype) {
  for (const Sample& small : every_dtype()) {
    at::Tensor base = at::zeros({4, 6}, at::kByte)
                          .repeat({1, static_cast<std::int64_t>(small.tensor.itemsize())})
                          .view(small.tensor.scalar_type());
    for (const Sample& sample : every_shape(base)) {
      wire::BlockPool pool;
      const Result<EncodedTensors> encoded = encode_tensors({&sample.tensor, 1}, {}, SharedMemory::copy);
      ASSERT_TRUE(encoded) << encoded.error().message();
      const Result<TensorLayout> layout = TensorLayout::parse(encoded->table, kLimits);
      const auto made = layout->build(receive(pool, encoded->segments));
      EXPECT_EQ(difference(sample.tensor, (*made)[0].tensor), "") << small.name << " " << sample.name;
    }
  }
}

TEST(TensorCodec, H5_ReceivedQuantizedTensorsAreOrdinary) {
  const at::Tensor weight = at::arange(6, at::kFloat).view({2, 3});
  const at::Tensor scales = at::tensor({0.5, 0.25}, at::kDouble);
  const at::Tensor channels =
      travel_one(at::quantize_per_channel(weight, scales, at::zeros({2}, at::kLong), 0, at::kQInt8));
  EXPECT_TRUE(at::equal(channels.dequantize(), weight));
  EXPECT_TRUE(at::equal(channels.clone().dequantize(), weight));
  const at::Tensor whole = travel_one(at::quantize_per_tensor(weight, 0.5, 1, at::kQUInt8).t());
  EXPECT_TRUE(at::equal(whole.dequantize(), weight.t()));
  EXPECT_TRUE(at::equal(whole.contiguous().dequantize(), weight.t()));
}

TEST(TensorCodec, EveryOtherKindComesBack) {
  for (const Sample& sample : every_other_kind()) {
    EXPECT_EQ(difference(sample.tensor, travel_one(sample.tensor)), "") << sample.name;
  }
}

TEST(TensorCodec, AMessageOfEverythingComesBackInOrder) {
  std::vector<at::Tensor> tensors;
  for (const Sample& sample : every_dtype()) tensors.push_back(sample.tensor);
  for (const Sample& sample : every_shape(at::rand({4, 6}))) tensors.push_back(sample.tensor);
  for (const Sample& sample : every_other_kind()) tensors.push_back(sample.tensor);
  tensors.push_back(at::Tensor());
  tensors.push_back(at::arange(100000));
  const std::vector<DecodedTensor> made = travel(tensors);
  ASSERT_EQ(made.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_EQ(difference(tensors[i], made[i].tensor), "") << i;
}

TEST(TensorCodec, NoTensorsAreATableWithoutSegments) {
  EXPECT_TRUE(travel({}).empty());
  EXPECT_TRUE(encode_tensors({})->segments.empty());
}

TEST(TensorCodec, LazyBitsBecomeValues) {
  const at::Tensor complex = at::complex(at::arange(6, at::kFloat), at::ones({6}));
  const at::Tensor conjugated = at::conj(complex);
  const at::Tensor negated = at::imag(conjugated);
  const at::Tensor zero = at::_efficientzerotensor({3}, at::kFloat);
  ASSERT_TRUE(conjugated.is_conj() && negated.is_neg() && zero._is_zerotensor());
  for (const at::Tensor& tensor : {conjugated, negated, zero}) {
    const at::Tensor back = travel_one(tensor);
    EXPECT_FALSE(back.is_conj() || back.is_neg() || back._is_zerotensor());
    EXPECT_TRUE(at::equal(back, tensor));
  }
}

TEST(TensorCodec, DA18_BothBitsTravelAndOnlyAnUnrecordedTensorBecomesALeaf) {
  const at::Tensor leaf = at::ones({2}).requires_grad_();
  const at::Tensor computed = leaf * 2;
  const std::vector<DecodedTensor> made = travel({leaf, computed, at::ones({2}), at::Tensor()}, {0, 1, 1, 1});
  ASSERT_EQ(made.size(), 4u);
  EXPECT_TRUE(made[0].requires_grad && !made[0].recorded && made[0].tensor.requires_grad());
  EXPECT_TRUE(made[0].tensor.is_leaf());
  EXPECT_TRUE(made[1].requires_grad && made[1].recorded && !made[1].tensor.requires_grad());
  EXPECT_TRUE(made[2].defined && !made[2].requires_grad && !made[2].recorded);
  EXPECT_FALSE(made[3].defined || made[3].recorded || made[3].tensor.defined());
}

TEST(TensorCodec, TheGraphDoesNotTravelNorIsItKeptAlive) {
  std::optional<at::Tensor> weight(at::ones({20000}).requires_grad_());
  at::Tensor computed = *weight * 2;
  const c10::weak_intrusive_ptr<c10::TensorImpl> alive(weight->getIntrusivePtr());
  const Result<EncodedTensors> encoded = encode_tensors({&computed, 1});
  weight.reset();
  computed = at::Tensor();
  EXPECT_TRUE(alive.expired());
  ASSERT_EQ(encoded->segments.size(), 1u);
  EXPECT_EQ(reinterpret_cast<const float*>(encoded->segments[0].data)[19999], 2);  // the storage is
}

TEST(TensorCodec, SmallMessagesAreCopiedAndLargeStorageIsReferenced) {
  at::Tensor small = at::zeros({16});
  at::Tensor large = at::zeros({8192});
  const Result<EncodedTensors> copied = encode_tensors({&small, 1});
  const Result<EncodedTensors> referenced = encode_tensors({&large, 1});
  EXPECT_NE(static_cast<const void*>(copied->segments[0].data), small.const_data_ptr());
  EXPECT_EQ(static_cast<const void*>(referenced->segments[0].data), large.const_data_ptr());
  small.fill_(1);
  EXPECT_EQ(*reinterpret_cast<const float*>(copied->segments[0].data), 0);
}

TEST(TensorCodec, ManySmallTensorsBesideALargeOneShareOneSegment) {
  std::vector<at::Tensor> tensors(1, at::arange(10000));
  for (int i = 0; i < 50; ++i) tensors.push_back(at::full({i}, i));
  const Result<EncodedTensors> encoded = encode_tensors(tensors);
  EXPECT_EQ(encoded->segments.size(), 2u);
  const std::vector<DecodedTensor> made = travel(tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_EQ(difference(tensors[i], made[i].tensor), "") << i;
}

TEST(TensorCodec, OnlyTheTouchedRangeOfAStorageTravels) {
  const at::Tensor base = at::arange(100000, at::kFloat);
  const at::Tensor part = base.slice(0, 1000, 2000);
  EXPECT_LE(encode_tensors({&part, 1})->segments[0].size, 4000u + 16);
  const at::Tensor expanded = base.slice(0, 0, 1).expand({100000});
  EXPECT_LE(encode_tensors({&expanded, 1})->segments[0].size, 16u);
  EXPECT_EQ(difference(expanded, travel_one(expanded)), "");
}

TEST(TensorCodec, ARangeOfWhichLessThanHalfIsUsedIsCompacted) {
  const at::Tensor base = at::arange(100000, at::kFloat).view({1000, 100});
  const at::Tensor column = base.slice(1, 3, 4);
  EXPECT_EQ(encode_tensors({&column, 1})->segments[0].size, 4000u);
  EXPECT_TRUE(at::equal(travel_one(column), column));
  const at::Tensor expanded = base.slice(1, 3, 4).expand({1000, 7});
  const at::Tensor back = travel_one(expanded);
  EXPECT_TRUE(at::equal(back, expanded));
  EXPECT_EQ(back.stride(1), 0);
  EXPECT_EQ(back.storage().nbytes(), 4000u);
}

TEST(TensorCodec, ReceivedTensorsAreOrdinary) {
  at::Tensor back = travel_one(at::ones({4}));
  EXPECT_FALSE(back.is_inference());
  EXPECT_EQ(back._version(), 0);
  back.add_(1);
  EXPECT_EQ(back._version(), 1);
  back.resize_({1000});
  back.fill_(2);
  EXPECT_EQ(back.sum().item<float>(), 2000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(travel_one(at::ones({3, 3})).const_data_ptr()) % 64, 0u);
}

TEST(TensorCodec, InferenceModeOnEitherSideIsNoMatter) {
  at::Tensor sent;
  at::Tensor received;
  {
    const c10::InferenceMode on;
    sent = at::ones({3});
    received = travel_one(sent);
  }
  ASSERT_TRUE(sent.is_inference());
  EXPECT_FALSE(received.is_inference());
  EXPECT_EQ(difference(sent.clone(), received), "");
}

TEST(TensorCodec, BlocksGoBackToThePoolWithTheLastTensorOverThem) {
  wire::BlockPool pool;
  const std::vector<at::Tensor> tensors{at::ones({10}), at::ones({20}), at::arange(10000)};
  const Result<EncodedTensors> encoded = encode_tensors(tensors);
  const Result<TensorLayout> layout = TensorLayout::parse(encoded->table, kLimits);
  Result<std::vector<DecodedTensor>> made = layout->build(receive(pool, encoded->segments));
  at::Tensor view = (*made)[1].tensor.slice(0, 3, 4);
  EXPECT_EQ(pool.cached_bytes(), 0u);
  made = Error(Errc::ok, "");
  EXPECT_EQ(pool.cached_bytes(), 131072u);  // the block of the 80,000 bytes; the two small tensors share another one
  view = at::Tensor();
  EXPECT_EQ(pool.cached_bytes(), 131072u + 256u);
}

TEST(TensorCodec, OneLayoutBuildsAgainFromOtherBlocks) {
  wire::BlockPool pool;
  const at::Tensor tensor = at::arange(6);
  const Result<EncodedTensors> encoded = encode_tensors({&tensor, 1});
  const Result<TensorLayout> layout = TensorLayout::parse(encoded->table, kLimits);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(difference(tensor, (*layout->build(receive(pool, encoded->segments)))[0].tensor), "");
  }
}

TEST(TensorCodec, GapsBetweenCopiedTensorsAreZeroNotOldMemory) {
  const std::vector<at::Tensor> tensors{at::full({1}, 7, at::kByte), at::full({1}, 9, at::kByte)};
  const Result<EncodedTensors> encoded = encode_tensors(tensors);
  const wire::ByteView bytes = encoded->segments[0].view();
  ASSERT_EQ(bytes.size(), 65u);
  for (std::size_t i = 1; i < 64; ++i) EXPECT_EQ(bytes[i], std::byte{0});
}

}  // namespace
}  // namespace caftan::tensor::codec_test
