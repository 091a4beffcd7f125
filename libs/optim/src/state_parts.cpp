#include "state_parts.hpp"

#include <string>
#include <tuple>
#include <utility>

#include "caftan/tensor/codec.hpp"
#include "caftan/wire/archive.hpp"
#include "caftan/wire/internal/block_pool.hpp"

namespace caftan::optim {
namespace {

constexpr std::uint64_t kMagic = 0x54504f4e41544643;  // "CFTANOPT"
constexpr std::size_t kLbfgsTensors = 3;              // of the last iteration, and of each change

struct Head {
  std::vector<Algorithm> algorithms;
  std::vector<SavedEntry> entries;
  wire::Bytes table;  ///< the table of the tensors that follow the head

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& algorithms& entries& table;
  }
};

Error truncated() { return malformed_state("is truncated"); }

Result<void> read_head(wire::ByteView bytes, Head& head, StateParts& parts) {
  if (parts.version < StateVersion::initial_rates) return wire::decode_into(bytes, head);
  const auto read = parts.version < StateVersion::lbfgs
                        ? wire::decode_into(bytes, std::tie(head, parts.initial_lrs))
                        : wire::decode_into(bytes, std::tie(head, parts.initial_lrs, parts.lbfgs));
  if (!read) return read;
  const bool may_lack = parts.version > StateVersion::initial_rates && parts.initial_lrs.empty();
  if (may_lack || parts.initial_lrs.size() == head.algorithms.size()) return {};
  return malformed_state("has initial rates of another number of groups");
}

/// Reads the tensors behind the head. They are copied, so that a loaded state does not keep the file's bytes in memory.
Result<std::vector<tensor::DecodedTensor>> read_tensors(wire::ByteView table, wire::ByteView rest) {
  auto layout = tensor::TensorLayout::parse(table, {.max_bytes = rest.size(), .max_tensors = table.size()});
  if (!layout) return layout.error().code() == Errc::limit_exceeded ? truncated() : layout.error();
  std::vector<wire::Block> blocks;
  wire::BlockPool pool;
  for (const std::uint64_t size : layout->segment_sizes()) {
    if (size > rest.size()) return truncated();
    auto block = pool.take(size);
    if (!block) return block.error();
    std::memcpy(block->data(), rest.data(), size);
    rest = rest.subspan(size);
    blocks.push_back(std::move(*block));
  }
  if (!rest.empty()) return malformed_state("has " + std::to_string(rest.size()) + " bytes too many");
  return layout->build(std::move(blocks));
}

/// Gives each parameter its tensors, and LBFGS what is left.
Result<void> share_out(std::vector<SavedEntry> entries, const std::vector<tensor::DecodedTensor>& tensors,
                       StateParts& parts) {
  std::size_t next = 0;
  for (SavedEntry& entry : entries) {
    const std::string name = "parameter " + std::to_string(parts.pieces.size());
    if (entry.group >= parts.algorithms.size()) return malformed_state("has " + name + " in a group that it has not");
    StateParts::Piece& piece = parts.pieces.emplace_back();
    for (std::size_t slot = 0; slot < entry.present.size(); ++slot) {
      if (!entry.present[slot]) continue;
      if (next == tensors.size() || !tensors[next].tensor.defined())
        return malformed_state("has no tensor for " + name);
      piece.tensors[slot] = tensors[next++].tensor;
    }
    piece.entry = std::move(entry);
  }
  const std::size_t expected =
      parts.lbfgs.iterations > 0 ? kLbfgsTensors + kLbfgsTensors * std::size_t{parts.lbfgs.changes} : 0;
  if (tensors.size() - next != expected) return malformed_state("has tensors left over, or too few");
  for (; next < tensors.size(); ++next) parts.lbfgs_tensors.push_back(tensors[next].tensor);
  return {};
}

}  // namespace

Error malformed_state(const std::string& what) { return Error(Errc::malformed_payload, "the saved optimizer " + what); }

Result<SavedContent> after_prefix(wire::ByteView bytes, std::uint64_t magic, std::uint32_t newest) {
  std::uint64_t found = 0;
  std::uint32_t version = 0;
  if (!take(bytes, found)) return truncated();
  if (found != magic) return Error(Errc::malformed_payload, "these bytes are no saved optimizer");
  if (!take(bytes, version)) return truncated();
  if (version > newest) {
    return Error(Errc::protocol_mismatch, "the saved optimizer has version " + std::to_string(version) +
                                              ", this build reads up to " + std::to_string(newest) +
                                              ": load it with the version that wrote it, or a later one");
  }
  return SavedContent{version, bytes};
}

Result<StateParts> take_apart(wire::ByteView bytes) {
  const auto content = after_prefix(bytes, kMagic, static_cast<std::uint32_t>(StateVersion::lbfgs));
  if (!content) return content.error();
  bytes = content->bytes;
  std::uint64_t size = 0;
  if (!take(bytes, size) || size > bytes.size()) return truncated();
  StateParts parts;
  parts.version = static_cast<StateVersion>(content->version);
  Head head;
  if (auto read = read_head(bytes.first(size), head, parts); !read) return read.error();
  auto tensors = read_tensors(head.table, bytes.subspan(size));
  if (!tensors) return tensors.error();
  parts.algorithms = std::move(head.algorithms);
  if (auto divided = share_out(std::move(head.entries), *tensors, parts); !divided) return divided.error();
  return parts;
}

Result<wire::Bytes> put_together(const StateParts& parts) {
  Head head{parts.algorithms, {}, {}};
  std::vector<at::Tensor> tensors;
  for (const StateParts::Piece& piece : parts.pieces) {
    for (std::size_t slot = 0; slot < kStateSlots; ++slot) {
      if (piece.entry.present[slot]) tensors.push_back(piece.tensors[slot]);
    }
    head.entries.push_back(piece.entry);
  }
  tensors.insert(tensors.end(), parts.lbfgs_tensors.begin(), parts.lbfgs_tensors.end());
  auto encoded = tensor::encode_tensors(tensors);
  if (!encoded) return encoded.error();
  head.table = std::move(encoded->table);
  wire::Bytes bytes;
  put(bytes, kMagic);
  put(bytes, static_cast<std::uint32_t>(parts.version));
  auto written = parts.version < StateVersion::initial_rates ? wire::encode(head)
                 : parts.version < StateVersion::lbfgs       ? wire::encode(std::tie(head, parts.initial_lrs))
                                                       : wire::encode(std::tie(head, parts.initial_lrs, parts.lbfgs));
  if (!written) return written.error();
  put(bytes, std::uint64_t{written->size()});
  wire::append(bytes, *written);
  for (const wire::Segment& segment : encoded->segments) wire::append(bytes, segment.view());
  return bytes;
}

}  // namespace caftan::optim
