#include "image_data/idx.hpp"

namespace caftan::image_data {
namespace {

constexpr std::size_t kMagicSize = 4;
constexpr std::uint8_t kUnsignedByte = 0x08;

/// Precondition: four bytes from `at` on.
std::uint32_t big_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = (number << 8U) | bytes[at + i];
  return number;
}

}  // namespace

Result<IdxValues> read_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions, const std::string& name) {
  const auto malformed = [&name](const std::string& text) {
    return Error(Errc::malformed_payload, name + ": " + text);
  };
  const std::size_t header = kMagicSize + 4 * dimensions;
  if (bytes.size() >= kMagicSize) {
    if (bytes[0] != 0 || bytes[1] != 0) return malformed("it is no IDX file, which begins with two zeros");
    if (bytes[2] != kUnsignedByte) {
      return malformed("its values are of IDX type " + std::to_string(bytes[2]) + ", not unsigned bytes (8)");
    }
    if (bytes[3] != dimensions) {
      return malformed("its values have " + std::to_string(bytes[3]) + " dimensions, not " +
                       std::to_string(dimensions));
    }
  }
  if (bytes.size() < header)
    return malformed("it is cut off: its header alone has " + std::to_string(header) + " bytes");
  IdxValues found{.sizes = {1, 1, 1}, .values = bytes.subspan(header)};
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::uint32_t size = big_endian(bytes, kMagicSize + 4 * i);
    if (size == 0) return malformed("dimension " + std::to_string(i) + " has size 0");
    found.sizes[i] = size;
    count *= size;  // below 2^40 * 2^32
    if (count > kMost) return malformed("its header announces more than 2^40 values");
  }
  if (found.values.size() != count) {
    return malformed((found.values.size() < count ? "it is cut off: it has " : "other bytes follow its end: it has ") +
                     std::to_string(found.values.size()) + " values, its header announces " + std::to_string(count));
  }
  return found;
}

}  // namespace caftan::image_data
