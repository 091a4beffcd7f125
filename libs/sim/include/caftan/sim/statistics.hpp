/// Statistics of logical processes: `Tally` of values, `TimeAverage` of a value that holds for spans of time,
/// `Histogram`. A process has them as members and names them in `static void statistics(auto& s, P& p)`; its
/// `serialize` writes them. Each is gathered per process and merged in the order of ids, so that the bits do not depend
/// on the placement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "caftan/sim/lp_id.hpp"

namespace caftan::sim {

/// Count, mean, deviation, least and largest of values. Threads: one at a time.
/// Source: Welford 1962; merged as Chan, Golub, LeVeque 1979.
class Tally {
 public:
  /// Counts a value.
  void add(double value) noexcept;
  /// Counts all values of another one.
  void merge(const Tally& other) noexcept;
  /// Forgets all values.
  void reset() noexcept { *this = Tally(); }
  std::uint64_t count() const noexcept { return count_; }
  /// Returns the mean; 0 without values.
  double mean() const noexcept { return mean_; }
  /// Returns the standard deviation of a sample (n - 1); 0 with fewer than two values.
  double deviation() const noexcept;
  /// Returns the least value; +infinity without values.
  double least() const noexcept { return least_; }
  /// Returns the largest value; -infinity without values.
  double largest() const noexcept { return largest_; }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& count_& mean_& squares_& least_& largest_;
  }

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // sum of the squares of the differences from the mean
  double least_ = std::numeric_limits<double>::infinity();
  double largest_ = -std::numeric_limits<double>::infinity();
};

/// The mean over time of a value that changes at moments. Threads: one at a time.
class TimeAverage {
 public:
  /// The value is `value` from `now` on. Precondition: `now` is not before the moment of an earlier call.
  void set(Time now, double value) noexcept;
  /// Forgets what was before `now`; the value stays.
  void reset(Time now) noexcept;
  /// Counts the time up to `now`.
  void close(Time now) noexcept { set(now, value_); }
  /// Adds the area and the time of another one, which was closed.
  void merge(const TimeAverage& other) noexcept;
  /// Returns the mean up to the last `set` or `close`, the largest value without time.
  double mean() const noexcept;
  double value() const noexcept { return value_; }
  /// Returns the largest value that held; -infinity before the first `set`.
  double largest() const noexcept { return largest_; }
  /// Returns how much time is counted, in units; of merged ones the sum.
  double span() const noexcept { return span_.units(); }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value_& area_& largest_& since_& span_;
  }

 private:
  double value_ = 0;
  double area_ = 0;  // value times units
  double largest_ = -std::numeric_limits<double>::infinity();
  Time since_{};
  Time span_{};
};

/// How many values lie in each of some equal parts of a range. Threads: one at a time.
class Histogram {
 public:
  Histogram() : Histogram(0, 1, 1) {}
  /// @param low, high  the range; low < high
  /// @param bins  its parts, at least 1
  Histogram(double low, double high, std::size_t bins) : low_(low), high_(high), counts_(bins + 2) {}
  /// Counts a value.
  void add(double value) noexcept;
  /// Adds the counts of one with the same parts.
  void merge(const Histogram& other);
  /// Sets all counts to 0.
  void reset() noexcept { counts_.assign(counts_.size(), 0); }
  /// Returns the counts: below the range, each part, at or above its end. What is not a number counts as above.
  std::span<const std::uint64_t> counts() const noexcept { return counts_; }
  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& low_& high_& counts_;
  }

 private:
  double low_;
  double high_;
  std::vector<std::uint64_t> counts_;
};

/// A statistic of any kind.
using Statistic = std::variant<Tally, TimeAverage, Histogram>;

/// One statistic of one process.
struct LpStatistic {
  LpId lp{};
  std::string name{};
  std::string unit{};
  Statistic value{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lp& name& unit& value;
  }
};

/// The object that `statistics` functions receive as `s`: `s("jobs in queue", q.length, "jobs")`.
class StatisticsVisitor {
 public:
  /// Forgets what was before `now`: the end of a warm-up.
  static StatisticsVisitor resetting(Time now) { return StatisticsVisitor(now, nullptr); }
  /// Appends copies, closed at `now`, to `to`, which must outlive the visitor.
  static StatisticsVisitor gathering(Time now, std::vector<LpStatistic>& to) { return StatisticsVisitor(now, &to); }

  void operator()(std::string_view name, Tally& tally, std::string_view unit = "");
  void operator()(std::string_view name, TimeAverage& average, std::string_view unit = "");
  void operator()(std::string_view name, Histogram& histogram, std::string_view unit = "");

  /// Sets whose statistics come next.
  void of(LpId lp) noexcept { lp_ = lp; }

 private:
  StatisticsVisitor(Time now, std::vector<LpStatistic>* to) : now_(now), to_(to) {}
  Time now_;
  std::vector<LpStatistic>* to_;
  LpId lp_{};
};

/// A statistic over all processes that have it.
struct MergedStatistic {
  std::string name{};
  std::string unit{};
  std::uint64_t processes = 0;
  Statistic value{};
};

/// Merges by name, in the order of ids; the names come in the order in which the first process has them.
/// @param all  in the order of ids: what the partitions gathered, one after the other
/// Errors: bad_arguments (one name for two kinds, or for histograms with other parts).
Result<std::vector<MergedStatistic>> merge_statistics(std::span<const LpStatistic> all);

/// Returns the table `scalars.csv`: statistic, unit, measure, value; one row for each measure, and for each part of a
/// histogram.
std::string scalars_csv(std::span<const MergedStatistic> merged);

}  // namespace caftan::sim
