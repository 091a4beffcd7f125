/// A tensor that cannot travel is refused with an error that names its position.
#include <ATen/ATen.h>
#include <ATen/NamedTensorUtils.h>
#include <gtest/gtest.h>

#include "tensor_samples.hpp"

namespace caftan::tensor::refusal_test {
namespace {

std::string refusal(const at::Tensor& tensor) {
  const std::vector<at::Tensor> tensors{at::ones({1}), tensor};
  const Result<EncodedTensors> encoded = encode_tensors(tensors);
  if (encoded) return "travels";
  EXPECT_EQ(encoded.error().code(), Errc::unsupported);
  return encoded.error().text();
}

TEST(TensorRefusal, EachKindIsNamedWithItsPosition) {
  const at::Tensor matrix = at::ones({2, 2});
  EXPECT_EQ(refusal(at::empty({2}, at::TensorOptions(at::kMeta).dtype(at::kFloat))),
            "argument tensor 1 (float32 strided): a meta tensor has no data");
  EXPECT_EQ(refusal(matrix.to_mkldnn()),
            "argument tensor 1 (float32 mkldnn): opaque mkldnn storage: call to_dense() first");
  EXPECT_EQ(refusal(at::_nested_tensor_from_tensor_list({at::ones({2}), at::ones({3})})),
            "argument tensor 1 (float32 nested): nested tensors do not travel: send its tensors");
  EXPECT_EQ(refusal(at::quantize_per_channel(matrix, at::ones({2}), at::zeros({2}, at::kFloat), 0, at::kQUInt8)),
            "argument tensor 1 (QUInt8 strided): quantized with zero points that are no integers");
  at::Tensor named = at::ones({2});
  at::internal_set_names_inplace(named, std::vector<at::Dimname>{at::Dimname::fromSymbol(at::Symbol::dimname("batch"))},
                                 true);
  EXPECT_EQ(refusal(named),
            "argument tensor 1 (float32 strided): named tensors do not travel: call rename(None) first");
}

TEST(TensorRefusal, ADtypeOfLessThanAByteIsNamed) {
  at::Tensor bits = at::empty({2}, at::kByte).view(at::kBits4x2);
  EXPECT_EQ(refusal(bits), "argument tensor 1 (Bits4x2 strided): this dtype does not travel");
}

TEST(TensorRefusal, ABoolThatIsNoBoolIsFoundAtTheSender) {
  const at::Tensor bytes = at::tensor({0, 1, 2, 255}, at::kByte);
  const at::Tensor bools = at::from_blob(bytes.mutable_data_ptr(), {4}, at::kBool);
  EXPECT_EQ(refusal(bools), "argument tensor 1 (bool strided): a bool that is neither 0 nor 1 in memory");
  EXPECT_EQ(refusal(bools.slice(0, 0, 2)), "travels");
}

TEST(TensorRefusal, AStorageThatWasShrunkIsFoundAtTheSender) {
  const at::Tensor tensor = at::ones({100});
  tensor.storage().unsafeGetStorageImpl()->set_nbytes(std::size_t{40});
  EXPECT_EQ(refusal(tensor), "argument tensor 1 (float32 strided): its storage is smaller than the tensor");
}

TEST(TensorRefusal, RecordedHasOneByteForEachTensor) {
  const at::Tensor tensor = at::ones({1});
  const std::vector<std::uint8_t> two(2);
  EXPECT_EQ(encode_tensors({&tensor, 1}, two).error().code(), Errc::bad_arguments);
}

}  // namespace
}  // namespace caftan::tensor::refusal_test
