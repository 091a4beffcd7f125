/// The IDX files of MNIST and of data of its form: a big-endian header with the sizes, then one byte for each value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::image_data {

/// Unsigned bytes with up to three dimensions.
struct IdxValues {
  std::array<std::int64_t, 3> sizes{};     ///< of the dimensions that there are; 1 beyond them
  std::span<const std::uint8_t> values{};  ///< part of the bytes that were given
};

/// Reads the header and checks that the values are all there, and nothing else.
/// @param dimensions  that the values must have, 1..3
/// @param name  of the file, for messages
/// Errors, naming the file: malformed_payload (no IDX file of unsigned bytes, of another number of dimensions, cut off,
///   followed by other bytes).
Result<IdxValues> read_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions, const std::string& name);

}  // namespace caftan::image_data
