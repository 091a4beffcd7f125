/// curve.csv of a run's folder: what its workers reported with a step, a row for each value. docs/results.md says what
/// users may rely on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/app/internal/csv.hpp"
#include "caftan/base/result.hpp"

namespace caftan::app {

class File;

/// The name of the file in a run's folder that has its curves.
inline constexpr const char* kCurveFile = "curve.csv";

struct CurveRow {
  std::int64_t step = 0;
  std::string name{};  ///< WORKER.METRIC; no name of a worker has a dot
  double value = 0;
};

/// How many rows `order_curve` holds in memory, about 50 MB; it orders more in parts beside the file.
inline constexpr std::size_t kRowsInMemory = 250'000;

/// Appends rows as they come, so that a run that is killed has them. Threads: one at a time.
class CurveWriter {
 public:
  /// The most bytes that wait for `write`; when there are more, `add` writes them.
  static constexpr std::size_t kMostWaiting = 64 * 1024;

  explicit CurveWriter(const std::filesystem::path& run_directory);
  CurveWriter(CurveWriter&&) noexcept;
  CurveWriter& operator=(CurveWriter&&) noexcept;
  ~CurveWriter();

  /// Adds a row. An error is kept for `write`; from then on rows are dropped.
  void add(std::string_view worker, std::string_view metric, std::int64_t step, double value);
  /// Writes what waits; the first row makes the file. Errors: io_error (a full disk, a file that exists).
  Result<void> write();
  /// Writes what waits and orders the file; nothing may be added any more.
  /// Errors: io_error; the file then has all rows that were written, in the order in which they came.
  Result<void> finish();
  /// Returns how many rows were added.
  std::uint64_t rows() const noexcept { return rows_; }

 private:
  Error fail(const Error& error);

  std::filesystem::path path_;
  std::unique_ptr<File> file_;  // null before the first row
  std::string waiting_;
  std::uint64_t rows_ = 0;
  std::optional<Error> failed_;
};

/// Reads a file row by row. Threads: one.
class CurveReader {
 public:
  /// Errors: io_error (no file, not readable), malformed_payload (another heading).
  static Result<CurveReader> open(const std::filesystem::path& file);
  /// Returns the next row, nothing at the end. Errors: malformed_payload, which names file and line.
  Result<std::optional<CurveRow>> next();

 private:
  CurveReader(std::filesystem::path file, std::unique_ptr<std::ifstream> stream);
  Error wrong(const std::string& what) const;

  std::filesystem::path file_;
  std::unique_ptr<std::ifstream> stream_;
  CsvReader csv_;
  std::vector<std::string> fields_;
};

/// Orders the rows by step, then by name; rows with the same step and name keep their order. A reader sees the old file
/// or the new one. Needs disk space for a second copy of the file, with more than `rows_at_once` rows for two copies.
/// Errors: io_error, malformed_payload; the file is unchanged then.
Result<void> order_curve(const std::filesystem::path& file, std::size_t rows_at_once = kRowsInMemory);

}  // namespace caftan::app
