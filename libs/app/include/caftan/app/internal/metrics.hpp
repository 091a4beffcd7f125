/// Metrics of a run: values are collected per worker and name, and every `output.every` one row each goes to
/// metrics.csv (RFC 4180) and metrics.jsonl. Columns are fixed; each line is written at once, so that both files parse
/// up to their last line at whatever moment the process is killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// What happened to one metric of one worker since the row before.
struct MetricRow {
  double time_s = 0;  ///< since the start of the run
  std::string worker{};
  std::string metric{};
  std::uint64_t count = 0;  ///< values in this row, >= 1
  double last = 0;
  double mean = 0;
  double min = 0;
  double max = 0;
};

/// Threads: one at a time.
class MetricTable {
 public:
  /// Adds one value of a worker's metric to the row that is open.
  void add(std::string_view worker, std::string_view metric, double value);
  /// Returns a row per metric that got values since the last call, by worker and name, and starts anew.
  std::vector<MetricRow> drain(double time_s);
  /// Returns the last value ever added of each metric.
  const std::map<std::pair<std::string, std::string>, double>& last() const noexcept { return last_; }

 private:
  struct Sum {
    std::uint64_t count = 0;
    double total = 0;
    double min = 0;
    double max = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> open_;
  std::map<std::pair<std::string, std::string>, double> last_;
};

/// Threads: one at a time.
class MetricsWriter {
 public:
  /// Makes metrics.csv with its heading and metrics.jsonl in a run's folder.
  /// Errors: io_error (also if one of them exists).
  static Result<MetricsWriter> create(const std::filesystem::path& run_directory);
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;
  ~MetricsWriter();

  /// Appends the rows to both files. Numbers that are not finite are "nan", "inf" in CSV and null in JSON.
  /// Errors: io_error (a full disk).
  Result<void> write(std::span<const MetricRow> rows);

 private:
  struct Files;
  explicit MetricsWriter(std::unique_ptr<Files> files);
  std::unique_ptr<Files> files_;
};

}  // namespace caftan::app
