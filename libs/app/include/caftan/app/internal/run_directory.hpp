/// The folder of one run: DIR/NAME-YYYYMMDD-N with resolved.toml, log/, metrics and summary. An existing run is never
/// written to.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// Returns today's date in the local time zone.
std::chrono::year_month_day today();

/// Writes a file as a whole: a reader sees the old one or the new one, also after a crash of this process.
/// Errors: io_error.
Result<void> write_whole_file(const std::filesystem::path& file, std::string_view text);

/// Makes `dir` if needed, then the first free DIR/NAME-YYYYMMDD-N (N from 1; two starts at once get different ones).
/// Errors: io_error.
Result<std::filesystem::path> make_numbered_folder(const std::filesystem::path& dir, std::string_view name,
                                                   std::chrono::year_month_day date);

/// The folder of one run: where its files are. Copies name the same folder.
class RunDirectory {
 public:
  /// Makes `dir` if needed, then the first free DIR/NAME-YYYYMMDD-N (N from 1; two starts at once get different ones),
  /// its log/ and resolved.toml, and points the link DIR/latest to it.
  /// Errors: io_error (also if DIR/latest is no link); no new run is left then.
  static Result<RunDirectory> create(const std::filesystem::path& dir, std::string_view name,
                                     std::chrono::year_month_day date, std::string_view resolved);
  /// Checks whether `create` could make a run in `dir`, as far as the folders that exist and their rights show. Makes
  /// nothing. Errors: io_error.
  static Result<void> check(const std::filesystem::path& dir);
  /// Opens the folder of a run that exists, for a worker process of that run. Errors: io_error (it is no folder).
  static Result<RunDirectory> open(std::filesystem::path path);

  /// Returns the path as `dir` was given: relative or absolute.
  const std::filesystem::path& path() const noexcept { return path_; }
  /// Returns where the file with all defaults and overrides is.
  std::filesystem::path resolved_file() const { return path_ / "resolved.toml"; }
  /// Returns where the log of a worker is, log/NAME.log.
  std::filesystem::path log_file(std::string_view worker) const;
  /// Returns where summary.json is.
  std::filesystem::path summary_file() const { return path_ / "summary.json"; }

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace caftan::app
