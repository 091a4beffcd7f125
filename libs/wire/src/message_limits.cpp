#include "caftan/wire/message_limits.hpp"

#include <string>

namespace caftan::wire {

Error MessageLimits::why_not(std::uint64_t own, std::uint64_t bulk, std::uint64_t pieces) const {
  const auto beyond = [](const char* of, std::uint64_t size, const char* limit, std::uint64_t most) {
    return Error(Errc::limit_exceeded, "a message with " + std::to_string(size) + " bytes" + of + ", " + limit +
                                           " is " + std::to_string(most));
  };
  if (own > message) return beyond(" beside its tensors", own, "limits.message", message);
  if (bulk > tensors) return beyond(" of tensors", bulk, "limits.tensors", tensors);
  return Error(Errc::limit_exceeded, "a message with " + std::to_string(pieces) +
                                         " pieces of tensor memory, Limits::segments is " + std::to_string(segments) +
                                         ": send it in several messages");
}

}  // namespace caftan::wire
