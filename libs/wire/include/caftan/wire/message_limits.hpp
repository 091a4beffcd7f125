/// How large a message may be. Both sides know the limits of both, so that no message is sent which its receiver
/// refuses (WI-20 of docs/protocols/wire.md).
#pragma once

#include <cstdint>

#include "caftan/base/result.hpp"

namespace caftan::wire {

/// The limits of one message.
struct MessageLimits {
  std::uint64_t message = std::uint64_t{64} << 20;  ///< bytes of one message without its tensors, >= 1, below 4 GiB
  std::uint64_t tensors = std::uint64_t{16} << 30;  ///< bytes of all tensors of one message
  std::uint32_t segments = 1U << 20;  ///< tensors of one message, and pieces of memory that they lie in, >= 1

  bool operator==(const MessageLimits&) const = default;

  /// Compares the parts of a message with these limits.
  /// @param own  bytes without tensors
  /// @param bulk  bytes of the tensors
  /// @param pieces  segments that the tensors lie in
  /// Errors: limit_exceeded, naming the limit.
  Result<void> check(std::uint64_t own, std::uint64_t bulk, std::uint64_t pieces) const {
    if (own <= message && bulk <= tensors && pieces <= segments) return {};
    return why_not(own, bulk, pieces);
  }

 private:
  Error why_not(std::uint64_t own, std::uint64_t bulk, std::uint64_t pieces) const;
};

}  // namespace caftan::wire
