/// What a run leaves behind: its folder, with metrics while it runs, and the summary at its end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/app/internal/curve.hpp"
#include "caftan/app/internal/disk_reserve.hpp"
#include "caftan/app/internal/metrics.hpp"
#include "caftan/app/internal/plan.hpp"
#include "caftan/app/internal/run_directory.hpp"
#include "caftan/app/internal/summary.hpp"
#include "caftan/run/internal/run_messages.hpp"
#include "caftan/run/internal/supervisor.hpp"

namespace caftan::actors {

/// Threads: one.
class RunRecord {
 public:
  /// Makes the folder, and sets room aside for a summary with that many workers. Errors: io_error.
  static Result<RunRecord> create(const app::Application& application, const std::string& resolved,
                                  std::size_t workers);

  const app::RunDirectory& directory() const noexcept { return directory_; }
  void metric(const std::string& worker, const run::Metric& metric);
  void fingerprint(std::string text) { fingerprint_ = std::move(text); }
  const std::optional<std::string>& fingerprint() const noexcept { return fingerprint_; }
  void add_sent(const std::vector<SentFrames>& sent);
  /// Writes a row for each metric that has new values, and what waits of the curve. Errors: io_error.
  Result<void> write_rows(base::Duration elapsed);

  /// Orders curve.csv and draws curve.svg. Nothing is written any more but the summary. Returns the path of the
  /// picture; nothing if no metric had a step, or if there are more than kMostDrawn rows. Errors: those of the files;
  /// curve.csv has all of its rows then.
  Result<std::optional<std::filesystem::path>> draw_curve();
  /// Rows of a curve that is drawn at the end of its run; `caftan plot` draws longer ones.
  static constexpr std::uint64_t kMostDrawn = 1'000'000;
  std::uint64_t curve_rows() const noexcept { return curve_.rows(); }

  struct WorkerEnd {
    std::string name{};
    std::string host{};
    std::int64_t pid = 0;
    std::string error{};
  };
  /// Writes summary.json; on a full disk into the room that was set aside for it. Errors: io_error.
  Result<void> finish(const app::Application& application, const run::Verdict& verdict, base::Duration elapsed,
                      std::vector<WorkerEnd> workers, std::vector<app::RunSummary::Lost> lost);
  /// Returns what summary.json would hold now.
  std::string summary(const app::Application& application, const run::Verdict& verdict, base::Duration elapsed,
                      std::vector<WorkerEnd> workers, std::vector<app::RunSummary::Lost> lost = {}) const;
  /// Returns the descriptor of the disk reserve. A signal handler, which cannot call `finish`, closes it to make room
  /// for the summary.
  int reserve() const noexcept { return reserve_.descriptor(); }

 private:
  RunRecord(app::RunDirectory directory, app::MetricsWriter writer, app::DiskReserve reserve)
      : directory_(std::move(directory)),
        writer_(std::move(writer)),
        curve_(directory_.path()),
        reserve_(std::move(reserve)) {}

  app::RunDirectory directory_;
  app::MetricsWriter writer_;
  app::CurveWriter curve_;
  app::DiskReserve reserve_;
  app::MetricTable table_;
  std::optional<std::string> fingerprint_;
  std::map<std::string, app::RunSummary::Sent> sent_;
};

/// Returns the last line of a log that is no routine line (of level info) and stands before the line about a fatal
/// signal, at most 300 bytes; empty if there is none.
std::string last_line(const std::filesystem::path& file);

}  // namespace caftan::actors
