/// `read_gzip_file`: the content of a file that gzip has compressed, or of a plain one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::image_data {

/// Returns the content of a file. One that begins as gzip files do is unpacked, and its checksum is compared; any other
/// one is taken as it is.
/// @param most  bytes that the content may have
/// Errors, naming the file: io_error (missing, no file, unreadable), malformed_payload (cut off, damaged, followed by
///   other bytes), limit_exceeded (more than `most` bytes).
Result<std::vector<std::uint8_t>> read_gzip_file(const std::filesystem::path& file, std::size_t most);

}  // namespace caftan::image_data
