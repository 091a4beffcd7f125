#include "tensor_samples.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

namespace caftan::tensor {
namespace {

std::string differs(const char* what) { return std::string("another ") + what; }

at::Tensor elements(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_quantized() ? tensor.resolve_conj().resolve_neg().contiguous()
                                                                   : tensor;
}

std::string bits_differ(const at::Tensor& expected, const at::Tensor& actual) {
  const at::Tensor a = elements(expected.detach());
  const at::Tensor b = elements(actual.detach());
  if (a.numel() == 0) return "";
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0 ? "" : differs("bit in the elements");
}

std::string parts_differ(const at::Tensor& expected, const at::Tensor& actual) {
  const auto part = [](const std::string& difference, const char* name) {
    return difference.empty() ? "" : std::string(name) + ": " + difference;
  };
  std::string found;
  if (expected.layout() == at::kSparse) {
    if (expected.is_coalesced() != actual.is_coalesced()) return differs("is_coalesced");
    found += part(difference(expected._indices(), actual._indices()), "indices");
    return found + part(difference(expected._values().detach(), actual._values().detach()), "values");
  }
  const bool rows = expected.layout() == at::kSparseCsr || expected.layout() == at::kSparseBsr;
  const auto compressed = [rows](const at::Tensor& t) { return rows ? t.crow_indices() : t.ccol_indices(); };
  const auto plain = [rows](const at::Tensor& t) { return rows ? t.col_indices() : t.row_indices(); };
  found += part(difference(compressed(expected), compressed(actual)), "compressed");
  found += part(difference(plain(expected), plain(actual)), "plain");
  return found + part(difference(expected.values().detach(), actual.values().detach()), "values");
}

std::string quantized_differ(const at::Tensor& expected, const at::Tensor& actual) {
  if (expected.qscheme() != actual.qscheme()) return differs("scheme");
  if (expected.qscheme() == c10::kPerChannelAffine) {
    if (expected.q_per_channel_axis() != actual.q_per_channel_axis()) return differs("axis");
    if (!at::equal(expected.q_per_channel_scales(), actual.q_per_channel_scales())) return differs("scales");
    if (!at::equal(expected.q_per_channel_zero_points(), actual.q_per_channel_zero_points())) {
      return differs("zero points");
    }
  } else if (expected.q_scale() != actual.q_scale() || expected.q_zero_point() != actual.q_zero_point()) {
    return differs("scale or zero point");
  }
  return bits_differ(expected.int_repr(), actual.int_repr());
}

}  // namespace

std::vector<wire::Block> receive(wire::BlockPool& pool, const std::vector<wire::Segment>& segments) {
  std::vector<wire::Block> blocks;
  for (const wire::Segment& segment : segments) {
    wire::Block block = std::move(pool.take(segment.size).value());
    std::memcpy(block.data(), segment.data, segment.size);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<DecodedTensor> travel(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded) {
  wire::BlockPool pool;
  const Result<EncodedTensors> encoded = encode_tensors(tensors, recorded);
  EXPECT_TRUE(encoded) << encoded.error().message();
  if (!encoded) return {};
  const Result<TensorLayout> layout = TensorLayout::parse(encoded->table, kLimits);
  EXPECT_TRUE(layout) << layout.error().message();
  if (!layout) return {};
  EXPECT_EQ(layout->segment_sizes().size(), encoded->segments.size());
  EXPECT_EQ(layout->tensor_count(), tensors.size());
  Result<std::vector<DecodedTensor>> built = layout->build(receive(pool, encoded->segments));
  EXPECT_TRUE(built) << built.error().message();
  return built ? *std::move(built) : std::vector<DecodedTensor>();
}

std::vector<DecodedTensor> travel(std::initializer_list<at::Tensor> tensors, std::vector<std::uint8_t> recorded) {
  return travel(std::span(tensors.begin(), tensors.size()), recorded);
}

at::Tensor travel_one(const at::Tensor& tensor) {
  const std::vector<DecodedTensor> made = travel({tensor});
  return made.empty() ? at::Tensor() : made[0].tensor;
}

std::string difference(const at::Tensor& expected, const at::Tensor& actual) {
  if (expected.defined() != actual.defined()) return differs("defined");
  if (!expected.defined()) return "";
  if (expected.scalar_type() != actual.scalar_type()) return differs("dtype");
  if (expected.layout() != actual.layout()) return differs("layout");
  if (expected.sizes() != actual.sizes()) return differs("size");
  if (expected.requires_grad() != actual.requires_grad()) return differs("requires_grad");
  if (expected.layout() != at::kStrided) return parts_differ(expected, actual);
  if (expected.strides() != actual.strides()) return differs("stride");
  if (expected.is_quantized()) return quantized_differ(expected, actual);
  if (actual.is_conj() || actual.is_neg() || actual._is_zerotensor()) return differs("lazy bit");
  return bits_differ(expected, actual);
}

std::vector<Sample> every_dtype() {
  std::vector<Sample> samples;
  for (const at::ScalarType dtype : {at::kByte,
                                     at::kChar,
                                     at::kShort,
                                     at::kInt,
                                     at::kLong,
                                     at::kHalf,
                                     at::kFloat,
                                     at::kDouble,
                                     at::kComplexHalf,
                                     at::kComplexFloat,
                                     at::kComplexDouble,
                                     at::kBool,
                                     at::kBFloat16,
                                     at::kUInt16,
                                     at::kUInt32,
                                     at::kUInt64,
                                     at::kFloat8_e5m2,
                                     at::kFloat8_e4m3fn,
                                     at::kFloat8_e5m2fnuz,
                                     at::kFloat8_e4m3fnuz,
                                     at::kFloat8_e8m0fnu,
                                     at::kFloat4_e2m1fn_x2,
                                     at::kBits8,
                                     at::kBits16}) {
    at::Tensor tensor = at::empty({2, 3}, dtype);
    auto* bytes = static_cast<std::uint8_t*>(tensor.mutable_data_ptr());
    for (std::size_t i = 0; i < tensor.nbytes(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(dtype == at::kBool ? i % 2 : 37 * i + 11);
    }
    samples.push_back({c10::toString(dtype), std::move(tensor)});
  }
  return samples;
}

std::vector<Sample> every_shape(const at::Tensor& base) {
  return {
      {"whole", base},
      {"transposed", base.t()},
      {"slice of rows", base.slice(0, 1, 3)},
      {"slice of columns", base.slice(1, 2, 5)},
      {"every other column", base.slice(1, 0, 6, 2)},
      {"one element", base[2][3]},
      {"row expanded", base[1].expand({5, 6})},
      {"scalar expanded", base[0][0].expand({3, 2})},
      {"overlapping windows", base.flatten().unfold(0, 4, 1)},
      {"empty", base.slice(0, 2, 2)},
      {"empty with strides", base.slice(1, 0, 6, 2).slice(0, 1, 1)},
      {"many dimensions", base.view({1, 2, 1, 2, 3, 1, 2}).permute({6, 0, 4, 2, 1, 5, 3})},
      {"channels last", base.view({1, 2, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast)},
  };
}

std::vector<Sample> every_other_kind() {
  const at::Tensor dense = at::tensor({0.0f, 1.0f, 0.0f, 2.0f, 0.0f, 3.0f, 4.0f, 0.0f}).view({2, 4});
  const at::Tensor indices = at::tensor({1, 0, 1, 2, 3, 2}, at::kLong).view({2, 3});
  const at::Tensor values = at::tensor({1.0f, 2.0f, 3.0f});
  const at::Tensor quantizable = at::arange(6, at::kFloat).view({2, 3});
  return {
      {"coo coalesced", dense.to_sparse()},
      {"coo with duplicates", at::sparse_coo_tensor(indices, values, {2, 4})},
      {"coo hybrid", at::sparse_coo_tensor(indices.slice(0, 0, 1), at::ones({3, 2}), {4, 2})},
      {"coo empty", at::sparse_coo_tensor({3, 4}, at::TensorOptions(at::kFloat).layout(at::kSparse))},
      {"coo requires grad", dense.to_sparse().requires_grad_()},
      {"csr", dense.to_sparse_csr()},
      {"csc", dense.to_sparse_csc()},
      {"bsr", dense.to_sparse_bsr({2, 2})},
      {"bsc", dense.to_sparse_bsc({2, 2})},
      {"csr int32", at::sparse_csr_tensor(at::tensor({0, 1, 2}, at::kInt), at::tensor({1, 0}, at::kInt),
                                          at::tensor({5.0f, 6.0f}), {2, 2}, at::kFloat)},
      {"qint8", at::quantize_per_tensor(quantizable, 0.5, 3, at::kQInt8)},
      {"quint8", at::quantize_per_tensor(quantizable, 0.1, 7, at::kQUInt8)},
      {"qint32 transposed", at::quantize_per_tensor(quantizable, 1e-3, 0, at::kQInt32).t()},
      {"qint8 every other", at::quantize_per_tensor(quantizable, 0.5, 3, at::kQInt8).slice(1, 0, 3, 2)},
      {"qint8 per channel", at::quantize_per_channel(quantizable, at::tensor({0.5, 0.25}, at::kDouble),
                                                     at::tensor({-3, 4}, at::kLong), 0, at::kQInt8)},
      {"quint8 per channel transposed", at::quantize_per_channel(quantizable.t(), at::tensor({0.5, 0.25}, at::kDouble),
                                                                 at::tensor({3, 4}, at::kLong), 1, at::kQUInt8)},
  };
}

}  // namespace caftan::tensor
