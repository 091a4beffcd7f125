/// `WindowRule`: how far a partition may go by windows. What the others report goes in, a bound comes out; the same
/// numbers give the same bounds at all partitions (SM-6, SM-8).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/sim/time.hpp"

namespace caftan::sim {

/// Threads: none of its own and no lock.
class WindowRule {
 public:
  /// What a partition reports with each round.
  struct Report {
    Time next = kNever;        ///< the least time of its pending events
    std::vector<Time> sent{};  ///< by partition, the least time that it has sent there in this round
  };

  /// @param lookahead  at least 1 tick; kNever: partitions never send to each other
  WindowRule(std::uint32_t self, std::uint32_t partitions, Time lookahead);

  /// The clock lets partitions advance up to `border`, which does not fall.
  void grant(Time border) noexcept { granted_ = border; }
  /// A partition, this one included, has reported for the present round. Returns false if it has already, or if its
  /// report has not one time for each partition.
  bool on_report(std::uint32_t partition, const Report& report);
  std::uint64_t round() const noexcept { return round_; }
  /// Returns whether all have reported for the present round.
  bool is_complete() const noexcept { return missing_ == 0; }
  bool has_reported(std::uint32_t partition) const noexcept { return has_reported_[partition]; }
  /// Returns the least time that any event of a partition may still have. Precondition: is_complete().
  Time earliest(std::uint32_t partition) const noexcept { return earliest_[partition]; }
  /// Returns whether no event before the grant is left anywhere. Precondition: is_complete().
  bool is_at_border() const noexcept;
  /// Returns the bound of the window: events before it may be handled. Precondition: is_complete().
  Time bound() const noexcept;
  /// The window was handled: the next round begins.
  void begin_round();

 private:
  std::uint32_t self_;
  Time lookahead_;
  Time granted_{};
  std::uint64_t round_ = 0;
  std::uint32_t missing_;
  std::vector<bool> has_reported_;
  std::vector<Time> earliest_;  // of what was reported so far
};

}  // namespace caftan::sim
