/// A pending event in 32 bytes: its key, its destination, its type, and its payload, which lies beside it if it has
/// more than 8 bytes (`PayloadStore`).
#pragma once

#include <cstdint>

#include "caftan/sim/lp_id.hpp"

namespace caftan::sim {

/// The key is (time, priority, source, sequence), in this order (SM-1).
struct Event {
  /// One more than the largest sequence.
  static constexpr std::uint64_t kSequences = std::uint64_t{1} << 40;
  /// The value of `size` for payloads that lie in a PayloadStore.
  static constexpr std::uint8_t kStored = 255;
  /// The value of `size` for payloads that are still awaited: futures (SM-12).
  static constexpr std::uint8_t kAwaited = 254;
  /// The most bytes of a payload that lies in the event.
  static constexpr std::size_t kInline = 8;

  std::int64_t time = 0;
  std::uint64_t payload = 0;  ///< up to 8 bytes, or what PayloadStore gave, or which future
  std::uint32_t source = 0;
  std::uint32_t to = 0;
  std::uint64_t sequence : 40 = 0;
  std::uint64_t priority : 8 = 0;  ///< 128 + what the user gave
  std::uint64_t type : 8 = 0;      ///< position in the model's event types
  std::uint64_t size : 8 = 0;      ///< of the payload in bytes, or kStored or kAwaited

  bool is_awaited() const noexcept { return size == kAwaited; }
};
static_assert(sizeof(Event) == 32);

/// Returns whether `a` is handled before `b`.
inline bool comes_before(const Event& a, const Event& b) noexcept {
  if (a.time != b.time) return a.time < b.time;
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.source != b.source) return a.source < b.source;
  return a.sequence < b.sequence;
}

}  // namespace caftan::sim
