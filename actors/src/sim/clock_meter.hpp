/// `ClockMeter`: the numbers of the live line and of the last report: events a second, events of a window, waiting,
/// lambda. Plain arithmetic on what the partitions report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/sim/internal/partition.hpp"

namespace caftan::actors {

/// Threads: one at a time.
class ClockMeter {
 public:
  /// What a partition has done so far.
  struct Work {
    std::uint64_t windows = 0;
    base::Duration busy{};
    base::Duration waiting{};
  };

  /// @param lookahead  kNever: groups do not send to each other
  /// @param handled    events that the run which goes on had handled already
  ClockMeter(std::uint32_t partitions, sim::Time lookahead, sim::Time from, sim::Time end, std::uint64_t handled = 0);

  /// All partitions have reported. @param sums  over them @param elapsed  since the run began
  void on_border(const sim::BorderReport& sums, const std::vector<Work>& work, base::Duration elapsed);

  double events_per_s() const noexcept;  ///< since the border before the last one
  double events_per_window() const noexcept;
  /// Returns the share of the partitions' time in which they waited for frames, 0 to 1.
  double waiting() const noexcept;
  /// Returns L E / (tau P): how many times as long the events of one lookahead take as an exchange of frames; 0 if it
  /// is not known. Below 1 more partitions are no quicker, from 10 on they are.
  double lambda() const noexcept;
  std::uint64_t handled() const noexcept { return sums_.counters.handled - before_; }

  /// Returns "t 12.5 of 1000  1.2 M events/s  window 8192 events  waiting 3 %  lambda 60".
  std::string line() const;
  /// Returns what the run as a whole did, without the fingerprint.
  std::vector<std::string> report() const;

 private:
  const std::uint32_t partitions_;
  const sim::Time lookahead_;
  const sim::Time from_;
  const sim::Time end_;
  const std::uint64_t before_;
  sim::BorderReport sums_{};
  std::vector<Work> work_;
  base::Duration elapsed_{};
  double events_per_s_ = 0;
};

}  // namespace caftan::actors
