/// `PromiseRule`: how far a partition may go by promises (null messages). Promises of the others go in; a bound, and
/// what this partition may promise, come out (SM-7).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "caftan/sim/time.hpp"

namespace caftan::sim {

/// Source: Chandy and Misra 1979; Bryant 1977. Threads: none of its own and no lock.
class PromiseRule {
 public:
  /// @param lookahead  at least 1 tick; kNever: partitions never send to each other
  PromiseRule(std::uint32_t self, std::uint32_t partitions, Time lookahead);

  /// The clock lets partitions advance up to `border`, which does not fall. This partition has not reached it.
  void grant(Time border) noexcept;
  /// The run goes on from a checkpoint at that border: no event before it is left.
  void resume(Time border) noexcept;
  /// A process has asked for that end: no partition goes beyond it, or waits for more.
  void end_at(Time finish) noexcept { granted_ = std::min(granted_, finish); }
  /// Returns what is to be reached: the grant, or the end that a process asked for.
  Time target() const noexcept { return granted_; }
  /// A partition promises that none of its later frames has an event before `promise`.
  /// @param reached  the border that it has reached, -1 ticks: none
  /// Returns false if an earlier promise was larger.
  bool on_promise(std::uint32_t partition, Time promise, Time reached);
  /// Returns the bound: events before it may be handled.
  Time bound() const noexcept;
  /// Returns what this partition may promise. @param next  the least time of its pending events
  Time promise(Time next) const noexcept;
  /// Returns the largest promise so far to all others.
  Time promised() const noexcept { return promised_; }
  /// The promise was sent to all others.
  void on_promised(Time promise) noexcept { promised_ = promise; }
  /// Returns whether all events before the grant were handled here and none can come. @param next  as in promise
  bool may_reach(Time next) const noexcept;
  /// This partition has reported that it has reached the border.
  void on_reached() noexcept { has_reached_ = true; }
  bool has_reached() const noexcept { return has_reached_; }
  /// Returns whether all partitions have reported that they have reached the border.
  bool is_at_border() const noexcept;
  /// Returns whether this partition waits for that one.
  bool waits_for(std::uint32_t partition) const noexcept;

 private:
  Time least_promise() const noexcept;

  std::uint32_t self_;
  Time lookahead_;
  Time granted_{};
  Time promised_{-1};
  bool has_reached_ = true;  // border 0
  std::vector<Time> promises_;
  std::vector<Time> reached_;
};

}  // namespace caftan::sim
