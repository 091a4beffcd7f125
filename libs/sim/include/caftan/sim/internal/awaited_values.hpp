/// The values of pending events that were scheduled as futures (SM-12).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/sim/future_event.hpp"
#include "caftan/sim/internal/event.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::sim {

/// Returns what an error says of an event of too many bytes.
std::string too_large(std::size_t size, std::uint64_t largest);

/// Threads: one at a time.
class AwaitedValues {
 public:
  /// Takes the value of an event. @param sending  who schedules what, for errors. Returns the value's number.
  std::uint64_t add(std::unique_ptr<FutureEvent> value, std::string sending);

  /// Waits for a value, if nothing has waited for it before. Returns its bytes, valid until `erase`.
  /// @param largest  the most bytes
  /// Errors: that of the future, limit_exceeded; with who schedules what.
  Result<wire::ByteView> wait_for(std::uint64_t number, std::uint64_t largest);
  /// Returns the bytes of a value that was waited for.
  wire::ByteView bytes(std::uint64_t number) const { return values_.at(number).bytes; }
  void erase(std::uint64_t number) noexcept { values_.erase(number); }
  bool empty() const noexcept { return values_.empty(); }

  /// Keeps an event for another partition until the window ends.
  void leave(const Event& event) { leaving_.push_back(event); }
  /// Returns the events that were kept, in their order.
  std::vector<Event> take_leaving() noexcept { return std::exchange(leaving_, {}); }

 private:
  struct Value {
    std::unique_ptr<FutureEvent> future{};  // null: the bytes are there
    std::string sending{};
    wire::Bytes bytes{};
  };
  std::unordered_map<std::uint64_t, Value> values_;
  std::uint64_t next_ = 0;
  std::vector<Event> leaving_;
};

}  // namespace caftan::sim
