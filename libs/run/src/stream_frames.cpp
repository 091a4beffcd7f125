#include "caftan/run/internal/stream_frames.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "caftan/base/settings_io.hpp"

namespace caftan::run {
namespace {

constexpr std::size_t kLength = 4;
constexpr std::size_t kMostShown = 200;  // of another greeting

}  // namespace

Result<std::string> make_frame(wire::ByteView bytes) {
  if (bytes.size() > kLongestFrame) return Error(Errc::limit_exceeded, "a frame of a relay is too long");
  std::string frame;
  for (std::size_t i = 0; i < kLength; ++i) frame += static_cast<char>((bytes.size() >> (8 * i)) & 255U);
  frame.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return frame;
}

Result<std::optional<wire::Bytes>> StreamFrames::next() {
  const std::size_t common = std::min(greeting_.size(), waiting_.size());
  if (waiting_.compare(0, common, greeting_, 0, common) != 0) {
    const std::string line = waiting_.substr(0, std::min(waiting_.find('\n'), kMostShown));
    return Error(Errc::malformed_payload, "\"" + printable(line) + "\" came instead of a greeting");
  }
  if (waiting_.size() < greeting_.size()) return std::optional<wire::Bytes>();
  waiting_.erase(0, greeting_.size());
  greeting_.clear();
  if (waiting_.size() < kLength) return std::optional<wire::Bytes>();
  std::size_t size = 0;
  for (std::size_t i = 0; i < kLength; ++i) size |= std::size_t{static_cast<unsigned char>(waiting_[i])} << (8 * i);
  if (size > kLongestFrame) {
    return Error(Errc::malformed_payload, "a frame of a relay has " + std::to_string(size) + " bytes");
  }
  if (waiting_.size() < kLength + size) return std::optional<wire::Bytes>();
  wire::Bytes bytes(size);
  if (size > 0) std::memcpy(bytes.data(), waiting_.data() + kLength, size);
  waiting_.erase(0, kLength + size);
  return std::optional(std::move(bytes));
}

}  // namespace caftan::run
