/// Frames on a stream of bytes: a length of four bytes, the least significant first, and as many bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::run {

/// The longest frame: a resolved file of an application has its place in one.
inline constexpr std::size_t kLongestFrame = 8UL << 20;

/// Returns a frame with these bytes. Errors: limit_exceeded.
Result<std::string> make_frame(wire::ByteView bytes);

/// Cuts a stream into frames. The stream may begin with a line that it has to have, its greeting.
class StreamFrames {
 public:
  /// @param greeting  with its line break; empty = none
  explicit StreamFrames(std::string greeting = "") : greeting_(std::move(greeting)) {}

  void append(std::string_view bytes) { waiting_ += bytes; }
  /// Returns the bytes of the next frame; nothing if it is not there yet. Errors: malformed_payload (another greeting,
  /// whose text is in the error; a frame that is too long). After an error each call returns it again.
  Result<std::optional<wire::Bytes>> next();

 private:
  std::string greeting_;
  std::string waiting_;
};

}  // namespace caftan::run
