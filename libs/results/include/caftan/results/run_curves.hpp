/// The curves of one run, read from its folder. Start with `read_run`; `find_runs` names the runs of a sweep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::results {

/// What stands on the horizontal axis: the step that the role gave (curve.csv), or seconds since the start of the run
/// (metrics.csv, the mean of each row).
enum class Axis { step, time };

/// What one worker reported of one metric.
struct Curve {
  std::string worker{};
  std::string metric{};
  std::vector<double> x{};  ///< ascending, no x twice: of several values at one x the last one counts
  std::vector<double> y{};  ///< as many
};

/// The curves of one run, and what the run's resolved.toml says of it.
struct RunCurves {
  std::string folder{};    ///< name of the run's folder; where the path is a link, that of the folder to which it leads
  std::string parent{};    ///< the name of the folder in which `folder` is: "001" of a sweep
  std::string name{};      ///< run.name
  std::int64_t seed = 0;   ///< run.seed
  std::string settings{};  ///< resolved.toml without run.seed and [output]: equal ones differ in nothing else
  /// The keys of `settings`, each with its value as it stands in the file: "roles.agent.config.rate", "0.1".
  std::map<std::string, std::string> values{};
  std::vector<Curve> curves{};      ///< by worker and metric
  std::set<std::string> metrics{};  ///< names of all metrics that the run has, also of those that were not asked for
};

/// How many points are kept of one run at most, 320 MB.
inline constexpr std::size_t kMostPoints = 20'000'000;

/// Returns the folders of the runs that `path` stands for: of the folder of a sweep the newest try of each of its runs
/// that has the file of `axis`, in their order; of a folder in which runs are, such as SWEEP/001 or runs, the newest
/// run, to which the link `latest` leads; else `path` itself, which `read_run` then judges.
/// Errors: io_error (a sweep of which no run has the file).
Result<std::vector<std::filesystem::path>> find_runs(const std::filesystem::path& path, Axis axis);

/// Reads the curves of a run, also of one that goes on or was killed.
/// @param metric  METRIC of any worker, or WORKER.METRIC; nothing = all
/// Errors: io_error (no folder of a run, or the file is not there), malformed_payload (a row that is none, with file
///         and line), limit_exceeded (more than kMostPoints points).
Result<RunCurves> read_run(const std::filesystem::path& run, Axis axis,
                           const std::optional<std::string>& metric = std::nullopt);

}  // namespace caftan::results
