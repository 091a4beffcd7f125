/// Checkpoint files: named records of bytes behind one header with a checksum. Written whole and renamed into place, so
/// a reader sees the old file, the new one or none. Start with `write_checkpoint_file` and `read_checkpoint_file`.
///
/// Format, little-endian: 8 bytes "CAFTANck", u32 version, u32 CRC-32C of the body, u64 bytes of the body; the body, as
/// archive.hpp writes `CheckpointFile`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "caftan/wire/archive.hpp"

namespace caftan::wire {

/// The version that is written; a newer one is refused.
inline constexpr std::uint32_t kCheckpointVersion = 1;

/// One named piece of a checkpoint.
struct CheckpointRecord {
  std::string name{};
  Bytes bytes{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& bytes;
  }
};

/// What a checkpoint file holds.
struct CheckpointFile {
  std::string kind{};  ///< what the records are about, for example "rnn_lm.manifest"
  std::vector<CheckpointRecord> records{};

  /// Returns the record of that name. Errors: malformed_payload (there is none).
  Result<ByteView> find(std::string_view name) const;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& kind& records;
  }
};

/// Returns the CRC-32C (Castagnoli) of `bytes`, as iSCSI and ext4 compute it.
std::uint32_t crc32c(ByteView bytes) noexcept;

/// Returns a whole file's bytes. Errors: limit_exceeded (no memory).
Result<Bytes> encode_checkpoint(const CheckpointFile& file);

/// Returns the content of a file's bytes. Allocates in proportion to `bytes`, whatever lengths they announce.
/// @param kind  the kind of checkpoint that the reader wants; another one is an error
/// Errors: malformed_payload (no checkpoint, cut off, damaged, of another kind), unsupported (of a newer version).
Result<CheckpointFile> decode_checkpoint(ByteView bytes, std::string_view kind);

/// Writes a temporary file beside `path`, flushes it to the disk, and renames it to `path`. Errors: io_error,
/// limit_exceeded.
Result<void> write_checkpoint_file(const std::filesystem::path& path, const CheckpointFile& file);

/// Reads a file. Errors: io_error (missing, unreadable, no file), and those of `decode_checkpoint`, naming the file.
Result<CheckpointFile> read_checkpoint_file(const std::filesystem::path& path, std::string_view kind);

}  // namespace caftan::wire
