/// The folder of a sweep: sweep.toml with what has succeeded, sweep.csv, and a folder for each run with its log.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "caftan/app/internal/summary.hpp"
#include "caftan/app/internal/sweep_plan.hpp"
#include "caftan/base/result.hpp"
#include "launch/descriptor.hpp"

namespace caftan::actors {

/// Returns a digest of the file's bytes; nothing if the file cannot be read.
std::optional<std::string> digest_of_file(const std::filesystem::path& file);

/// Threads: one.
class SweepFolder {
 public:
  /// Begins a sweep in an empty folder, or continues the sweep that `path` is the folder of. No other process can open
  /// the folder while this object lives. A run whose summary is gone or damaged counts as a run that has not run yet.
  /// @param path  exists
  /// Errors: invalid_config (the folder is another sweep's, or holds other things), io_error, overloaded (another
  /// process works in it).
  static Result<SweepFolder> open(const std::filesystem::path& path, const std::string& digest,
                                  const app::SweepPlan& plan);

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Returns DIR/003, into which the run writes its own folder.
  std::filesystem::path folder_of(std::size_t run) const;
  std::filesystem::path log_of(std::size_t run) const { return folder_of(run) / "output.log"; }
  /// Returns to which folder the link `latest` of a run leads; empty if the run has not been tried.
  std::filesystem::path newest_of(std::size_t run) const;
  /// Returns the summary of a run's newest try, as far as `read_summary` reads it; nothing if it cannot be read.
  std::optional<app::RunSummary> summary_of(std::size_t run) const;

  app::SweepState& state() noexcept { return state_; }
  const app::SweepState& state() const noexcept { return state_; }
  /// Writes the state in one step. Errors: io_error.
  Result<void> save() const;

 private:
  SweepFolder(std::filesystem::path path, std::unique_ptr<Descriptor> lock, app::SweepState state, std::size_t runs)
      : path_(std::move(path)), lock_(std::move(lock)), state_(std::move(state)), runs_(runs) {}

  std::filesystem::path path_;
  std::unique_ptr<Descriptor> lock_;
  app::SweepState state_;
  std::size_t runs_;
};

}  // namespace caftan::actors
