/// Records: values that handlers note with `LpContext::record`, as series over virtual time. `Recorder` keeps those of
/// one partition, `series_csv` makes one table of all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "caftan/sim/lp_id.hpp"

namespace caftan::sim {

/// Which records are kept.
struct RecordPlan {
  std::vector<std::string> series{};  ///< names; a record of another name is dropped
  bool all = false;                   ///< keep all names
  Time every{};                       ///< the least time between two values of one process and name; 0 = keep all
};

/// One value of a series.
struct Record {
  Time time{};  ///< of the event whose handler noted it
  LpId lp{};
  std::string name{};
  double value = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& time& lp& name& value;
  }
};

/// The records of one partition. Threads: one at a time.
class Recorder {
 public:
  /// When a process has last kept a value of a name: what a checkpoint must hold, so that later runs keep the same
  /// ones.
  struct Last {
    LpId lp{};
    std::string name{};
    Time time{};

    template <class Archive>
    void serialize(Archive& archive, unsigned) {
      archive& lp& name& time;
    }
  };

  explicit Recorder(RecordPlan plan);
  /// Notes a value, if the plan keeps it.
  void record(Time now, LpId lp, std::string_view name, double value);
  /// Returns the records since the last call: in the order of time; those of one process in the order of its handlers.
  std::vector<Record> take();
  /// Returns how many values were kept since the start.
  std::uint64_t kept() const noexcept { return kept_; }
  /// Returns all last values, in the order of ids and names.
  std::vector<Last> last() const;
  /// Continues the series of an earlier run.
  void restore(const Last& last);
  /// Returns the series of the plan that no process has recorded here, each with the nearest recorded name, if one is
  /// near:
  /// "'jobs'; did you mean 'job'?".
  std::vector<std::string> missing() const;

 private:
  struct Kept {
    Time time;
    LpId lp;
    std::uint32_t name;
    double value;
  };
  std::uint32_t number_of(std::string_view name);

  RecordPlan plan_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // of all names that were recorded
  std::vector<std::string> names_;
  std::vector<bool> wanted_;  // by number
  std::vector<Kept> kept_now_;
  std::unordered_map<std::uint64_t, Time> last_;  // by process and number, with `every` only
  std::uint64_t kept_ = 0;
};

/// Sorts the records of several partitions by time and process; those of one process and time stay in their order.
void sort_records(std::vector<Record>& records);

/// Returns the table `series.csv` of sorted records: time, lp, name, value. @param head  whether with the head line
std::string series_csv(std::span<const Record> records, bool head = true);

}  // namespace caftan::sim
