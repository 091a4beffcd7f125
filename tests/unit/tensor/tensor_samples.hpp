/// Tensors to try a codec with, the way through it, and a strict comparison.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "caftan/tensor/codec.hpp"

namespace caftan::tensor {

inline constexpr TensorLayout::Limits kLimits{.max_bytes = std::uint64_t{1} << 30, .max_tensors = 4096};

/// Returns blocks with the bytes of the segments, as a receiver fills them.
std::vector<wire::Block> receive(wire::BlockPool& pool, const std::vector<wire::Segment>& segments);

/// Encodes, parses and builds; each failure is a test failure.
std::vector<DecodedTensor> travel(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded = {});
std::vector<DecodedTensor> travel(std::initializer_list<at::Tensor> tensors, std::vector<std::uint8_t> recorded = {});
at::Tensor travel_one(const at::Tensor& tensor);

/// Returns what differs in dtype, layout, sizes, strides, flags or any bit of the elements; empty if nothing does.
std::string difference(const at::Tensor& expected, const at::Tensor& actual);

struct Sample {
  std::string name;
  at::Tensor tensor;
};
/// Every dtype that travels, 2 x 3 elements with varied bits.
std::vector<Sample> every_dtype();
/// Every strided shape of `base` [4, 6]: whole, transposed, sliced, expanded, empty, zero-dimensional and so on.
std::vector<Sample> every_shape(const at::Tensor& base);
/// Returns one tensor of each sparse and quantized kind.
std::vector<Sample> every_other_kind();

}  // namespace caftan::tensor
