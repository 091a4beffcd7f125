/// How large a message may be. Both sides know the limits of both, so that no message is sent which its receiver
/// refuses (WI-20 of docs/protocols/wire.md).
#pragma once

#include <cstdint>

#include "caftan/base/result.hpp"

namespace caftan::wire {

struct MessageLimits {
  std::uint64_t message = std::uint64_t{64} << 20;      ///< bytes of one message without its tensors
  std::uint64_t tensor_bytes = std::uint64_t{1} << 30;  ///< bytes of all tensors of one message
  std::uint32_t tensors = 1U << 20;                     ///< tensor segments of one message

  /// Errors: limit_exceeded, naming the limit. @param own  bytes without tensors @param bulk  of the tensors
  /// @param segments  runs of tensor bytes
  Result<void> check(std::uint64_t own, std::uint64_t bulk, std::uint64_t segments) const {
    if (own <= message && bulk <= tensor_bytes && segments <= tensors) return {};
    return why_not(own, bulk, segments);
  }

 private:
  Error why_not(std::uint64_t own, std::uint64_t bulk, std::uint64_t segments) const;
};

}  // namespace caftan::wire
