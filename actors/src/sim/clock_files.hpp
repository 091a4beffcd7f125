/// What the clock of a simulation writes beside the files that each run has: series.csv, borders.csv, lateness.csv,
/// scalars.csv.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/sim/record.hpp"
#include "caftan/sim/statistics.hpp"
#include "caftan/sim/time.hpp"

namespace caftan::actors {

/// A table that grows while a run lasts. Nothing is made before the first row. Threads: one at a time.
class GrowingTable {
 public:
  /// @param folder  empty: nothing is written
  /// @param head    the first line
  GrowingTable(const std::filesystem::path& folder, const std::string& name, std::string head);
  /// Appends lines, and hands them to the system. Errors: io_error.
  Result<void> add(const std::string& lines);

 private:
  const std::filesystem::path file_;  // empty: none
  const std::string head_;
  std::ofstream stream_;
};

/// The tables of one run. Threads: one at a time.
class ClockFiles {
 public:
  /// @param folder  of the run; empty: nothing is written
  explicit ClockFiles(const std::filesystem::path& folder);

  /// Appends records of one border. Errors: io_error.
  Result<void> add_records(std::vector<sim::Record> records);
  /// Appends the hash of all processes at a border.
  Result<void> add_hash(sim::Time border, std::uint64_t hash);
  /// Appends how far a border lies behind real time.
  Result<void> add_lateness(sim::Time border, sim::Time lateness);
  /// Writes scalars.csv, if there are statistics.
  Result<void> write_scalars(std::span<const sim::MergedStatistic> merged) const;

 private:
  const std::filesystem::path folder_;
  GrowingTable series_;
  GrowingTable borders_;
  GrowingTable lateness_;
};

/// Returns a hash as 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace caftan::actors
