#include "caftan/tensor/packed.hpp"

#include <cstring>
#include <string>

#include "caftan/tensor/codec.hpp"

namespace caftan::tensor {
namespace {

Error malformed(const char* what) { return {Errc::malformed_payload, std::string("packed tensors: ") + what}; }

}  // namespace

Result<wire::Bytes> pack_tensors(std::span<const at::Tensor> tensors) {
  const auto encoded = encode_tensors(tensors);
  if (!encoded) return encoded.error();
  wire::Bytes bytes;
  const std::uint64_t size = encoded->table.size();
  wire::append(bytes, std::as_bytes(std::span(&size, 1)));
  wire::append(bytes, encoded->table);
  for (const wire::Segment& segment : encoded->segments) wire::append(bytes, segment.view());
  return bytes;
}

Result<std::vector<at::Tensor>> unpack_tensors(wire::ByteView bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) return malformed("truncated");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes = bytes.subspan(sizeof size);
  if (size > bytes.size()) return malformed("truncated");
  const wire::ByteView table = bytes.first(size);
  bytes = bytes.subspan(size);
  const auto layout = TensorLayout::parse(table, {.max_bytes = bytes.size()});
  if (!layout) return Error(Errc::malformed_payload, layout.error().text());
  wire::BlockPool pool;
  std::vector<wire::Block> blocks;
  for (const std::uint64_t segment : layout->segment_sizes()) {
    if (segment > bytes.size()) return malformed("truncated");
    auto block = pool.take(segment);
    if (!block) return block.error();
    std::memcpy(block->data(), bytes.data(), segment);
    blocks.push_back(*std::move(block));
    bytes = bytes.subspan(segment);
  }
  if (!bytes.empty()) return malformed("bytes are left over");
  auto decoded = layout->build(std::move(blocks));
  if (!decoded) return decoded.error();
  std::vector<at::Tensor> tensors;
  for (DecodedTensor& one : *decoded) tensors.push_back(std::move(one.tensor));
  return tensors;
}

}  // namespace caftan::tensor
