// Takes arbitrary bytes as a tensor table (its length: the first two bytes) and the contents of its segments (the rest,
// repeated). What is accepted is read to its last element and encoded again.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <cstdlib>

#include "caftan/tensor/codec.hpp"

namespace {

using namespace caftan;
using namespace caftan::tensor;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<wire::Block> fill_blocks(const TensorLayout& layout, wire::ByteView contents) {
  wire::BlockPool pool;
  std::vector<wire::Block> blocks;
  std::size_t at = 0;
  for (const std::uint64_t size : layout.segment_sizes()) {
    blocks.push_back(std::move(pool.take(size).value()));
    for (std::byte& b : blocks.back().span()) b = contents.empty() ? std::byte{0} : contents[at++ % contents.size()];
  }
  return blocks;
}

void read_all(const at::Tensor& tensor) {
  constexpr std::int64_t kMostElements = 1 << 12;  // an expanded tensor may announce more elements than memory can hold
  if (tensor.numel() > kMostElements) return;
  if (tensor.layout() == at::kStrided && !tensor.is_quantized()) {
    static_cast<void>(tensor.contiguous());
  } else {
    static_cast<void>(tensor.clone());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // One thread only: libtorch's other threads would spin between inputs of a few bytes.
  [[maybe_unused]] static const bool once = (at::set_num_threads(1), true);
  if (size < 2) return 0;
  const wire::ByteView input = std::as_bytes(std::span(data + 2, size - 2));
  const std::size_t length = std::min<std::size_t>(data[0] + 256u * data[1], input.size());
  const TensorLayout::Limits limits{.max_bytes = 1 << 13, .max_tensors = 64};
  const Result<TensorLayout> layout = TensorLayout::parse(input.first(length), limits);
  if (!layout) return 0;
  const auto made = layout->build(fill_blocks(*layout, input.subspan(length)));
  if (!made) {
    require(made.error().code() != Errc::bad_arguments);
    return 0;
  }
  std::vector<at::Tensor> tensors;
  std::vector<std::uint8_t> recorded;
  for (const DecodedTensor& decoded : *made) {
    if (decoded.defined) read_all(decoded.tensor.detach());
    tensors.push_back(decoded.tensor);
    recorded.push_back(decoded.recorded ? 1 : 0);
  }
  const Result<EncodedTensors> again = encode_tensors(tensors, recorded);
  require(again.has_value());
  require(TensorLayout::parse(again->table, {.max_bytes = 1 << 24, .max_tensors = 64}).has_value());
  return 0;
}
