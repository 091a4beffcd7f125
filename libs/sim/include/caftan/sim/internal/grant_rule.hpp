/// `GrantRule`: what the clock of a simulation grants next: the next checkpoint, the end of the warm-up, a pause, the
/// end, or what real time allows. Reports of the partitions go in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/sim/internal/partition.hpp"

namespace caftan::sim {

/// What the file of a run says of its borders, in units of the model.
struct GrantOptions {
  double end_time = 0;             ///< events at or after it stay pending; > 0
  double checkpoint_every = 0;     ///< 0 = none
  double warmup = 0;               ///< statistics before it are forgotten; 0 = none
  std::vector<double> pause_at{};  ///< in any order
  double real_time = 0;            ///< units a second; 0 = as fast as possible
};

/// A border that is granted, and why.
struct Grant {
  Time border{};
  bool saves = false;        ///< make a checkpoint there
  bool ends_warmup = false;  ///< forget the statistics there
  bool pauses = false;       ///< wait there until the clock is resumed
  bool ends = false;         ///< the run is over there
};

/// Threads: none of its own and no lock.
class GrantRule {
 public:
  /// @param from  the border of the checkpoint that the run goes on from; else 0
  /// Errors: invalid_config (a time that is negative, NaN or beyond 2^63 ticks, an end that is not after `from`, a
  /// warm-up
  ///   or a pause after the end).
  static Result<GrantRule> make(const GrantOptions& options, std::uint32_t partitions, Time from = {});

  /// Returns the next grant. @param elapsed  since the run began; counts in real time only
  /// In real time a grant may lie before all of these: what is due by then. nullopt: not even one tick is due, or the
  /// run is over.
  /// @param most  no grant goes beyond it: a border that is there for other reasons. Borders change no result (SM-9).
  std::optional<Grant> next(base::Duration elapsed, Time most = kNever) const;
  /// The clock has granted it to all partitions.
  void on_granted(const Grant& grant);
  /// The next grant ends at the next border that can be reached: a pause.
  void pause_next() noexcept { pause_asked_ = true; }
  /// The next grant covers one distinct time: a step. Pauses after it.
  void step_next() noexcept { step_asked_ = true; }
  /// A partition has reached the border. Errors: malformed_payload (of another border, a second time, or sums that do
  /// not add up once all have reported, SM-4).
  Result<void> on_report(std::uint32_t partition, const BorderReport& report);
  /// Returns whether all partitions have reported.
  bool is_complete() const noexcept { return missing_ == 0; }
  /// Returns whether the run is over: at the end, or no event is left. Precondition: is_complete().
  bool is_over() const noexcept;
  /// Returns the border that all have reached, or are on their way to.
  Time border() const noexcept { return border_; }
  /// Returns the end of the run: that of the file, or an earlier one that a process asked for.
  Time end() const noexcept { return end_; }
  /// Returns how much of virtual time is due. Real time only.
  Time due(base::Duration elapsed) const noexcept;
  /// Returns how far the present border lies behind what is due; 0 if it does not, and without real time.
  Time lateness(base::Duration elapsed) const noexcept;
  /// Returns the least time of any pending event. Precondition: is_complete().
  Time next_event() const noexcept { return next_event_; }
  /// Returns the sums over all partitions at the last border.
  const BorderReport& sums() const noexcept { return sums_; }

 private:
  GrantRule() = default;

  Time from_{};
  Time border_{};
  Time end_{};
  Time checkpoint_every_{};
  Time warmup_{};
  std::vector<Time> pauses_;  // sorted, those ahead
  double real_time_ = 0;
  bool pause_asked_ = false;
  bool step_asked_ = false;
  std::uint32_t missing_ = 0;
  std::vector<bool> has_reported_;
  Time next_event_{};
  BorderReport sums_{};
};

}  // namespace caftan::sim
