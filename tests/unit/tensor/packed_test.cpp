#include "caftan/tensor/packed.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace caftan::tensor::packed_test {
namespace {

std::vector<at::Tensor> make_tensors() {
  return {at::linspace(0, 1, 5000).view({50, 100}), at::Tensor(), at::ones({3}, at::kLong), at::empty({0}),
          at::linspace(0, 1, 12, at::kDouble).view({3, 4}).t()};
}

TEST(PackedTensors, ComeBackBitForBit) {
  const auto tensors = make_tensors();
  const auto read = unpack_tensors(pack_tensors(tensors).value()).value();
  ASSERT_EQ(read.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ASSERT_EQ(read[i].defined(), tensors[i].defined());
    if (!read[i].defined()) continue;
    EXPECT_TRUE(read[i].equal(tensors[i]));
    EXPECT_EQ(read[i].scalar_type(), tensors[i].scalar_type());
  }
  EXPECT_TRUE(unpack_tensors(pack_tensors({}).value()).value().empty());
}

TEST(PackedTensors, DoNotReferToTheirBytes) {
  wire::Bytes bytes = pack_tensors(make_tensors()).value();
  const auto read = unpack_tensors(bytes).value();
  std::ranges::fill(bytes, std::byte{0xff});
  EXPECT_TRUE(read[0].equal(make_tensors()[0]));
}

TEST(PackedTensors, EveryTruncationAndLeftOverByteIsRefused) {
  wire::Bytes bytes = pack_tensors(std::vector<at::Tensor>{at::ones({9}), at::zeros({2, 2})}).value();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = unpack_tensors(wire::ByteView(bytes).first(size));
    ASSERT_FALSE(read) << size;
    ASSERT_EQ(read.error().code(), Errc::malformed_payload) << size;
    ASSERT_EQ(read.error().text().find("left over"), std::string::npos) << size << ": read beyond the end";
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(unpack_tensors(bytes));
}

}  // namespace
}  // namespace caftan::tensor::packed_test
