/// `SweepPlan`: the runs of a sweep, made from `key=1..10` and `key=a,b`; and `SweepState`: which of them have
/// succeeded.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"

namespace caftan::app {

/// One key of a sweep with its values, each as it stands behind the '=' of an override.
struct SweepAxis {
  std::string key{};
  std::vector<std::string> values{};
  bool operator==(const SweepAxis&) const = default;
};

/// All combinations of the values of several keys. The last key changes from each run to the next, the first key least
/// often.
class SweepPlan {
 public:
  static constexpr std::size_t kMostRuns = 10'000;

  /// Reads `key=1..10` (integers, both ends included), `key=a,b,c` and `key=value`; an item of a list may be a range.
  /// A comma in quotes, [] or {} is part of a value.
  /// Errors: invalid_config (the text names the assignment), limit_exceeded (more than kMostRuns runs).
  static Result<SweepPlan> parse(std::span<const std::string> assignments);

  const std::vector<SweepAxis>& axes() const noexcept { return axes_; }
  std::size_t runs() const noexcept { return runs_; }
  /// Returns the value of each axis in a run, in the order of the axes. Precondition: run < runs().
  std::vector<std::string> values_of(std::size_t run) const;
  /// Returns `key=value` for each axis. Precondition: run < runs().
  std::vector<std::string> overrides_of(std::size_t run) const;
  /// Returns `key=value` of the keys that have several values, separated by blanks; for people.
  std::string describe(std::size_t run) const;

  bool operator==(const SweepPlan&) const = default;

 private:
  std::vector<SweepAxis> axes_;
  std::size_t runs_ = 1;
};

/// The record in a sweep's folder: which sweep it is, and which runs have succeeded or failed. A run that is neither
/// has not begun or was cut off.
class SweepState {
 public:
  /// Makes the state of a sweep in which nothing has run yet.
  /// @param digest  of the application file
  SweepState(std::string digest, const SweepPlan& plan);
  /// Errors: invalid_config (no state, or that of another file or of other keys; the text says which).
  static Result<SweepState> parse(std::string_view text, const std::string& digest, const SweepPlan& plan);
  /// Returns TOML text that `parse` reads.
  std::string text() const;

  bool has_succeeded(std::size_t run) const { return outcomes_[run] == Outcome::success; }
  void set_succeeded(std::size_t run) { outcomes_[run] = Outcome::success; }
  void set_failed(std::size_t run) { outcomes_[run] = Outcome::failure; }
  /// Marks the run as one that has to run again.
  void set_open(std::size_t run) { outcomes_[run] = Outcome::open; }
  /// Returns the runs that have not succeeded, in their order.
  std::vector<std::size_t> left() const;
  std::vector<std::size_t> failed() const { return all(Outcome::failure); }

 private:
  enum class Outcome { open, success, failure };
  std::vector<std::size_t> all(Outcome outcome) const;

  std::string digest_;
  std::vector<std::string> keys_;
  std::vector<Outcome> outcomes_;
};

/// Returns the name of a run's folder in the sweep's folder: "001", with as many digits as the last run needs and 3 at
/// least.
std::string sweep_run_name(std::size_t run, std::size_t runs);

/// Returns how long the runs that are left will take, at the speed of those that ended.
/// @param until_last  from the start to the end of the last run that ended
/// @param ended       runs, >= 1
/// @param now         since the start
base::Duration sweep_time_left(base::Duration until_last, std::size_t ended, std::size_t left, base::Duration now);

}  // namespace caftan::app
