/// The curves of one run, read from its folder. Start with `read_run`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
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
  std::vector<double> x{};  ///< ascending, each once: of several values at one x the last one counts
  std::vector<double> y{};  ///< as many
};

/// The curves of one run, and what the run's resolved.toml says of it.
struct RunCurves {
  std::string folder{};             ///< its name; where the path is a link, that of the folder itself
  std::string name{};               ///< run.name
  std::int64_t seed = 0;            ///< run.seed
  std::string settings{};           ///< resolved.toml without run.seed and [output]: equal ones differ in nothing else
  std::vector<Curve> curves{};      ///< by worker and metric
  std::set<std::string> metrics{};  ///< names of all that the run has, also of those that were not asked for
};

/// How many points are kept of one run at most, 320 MB.
inline constexpr std::size_t kMostPoints = 20'000'000;

/// Reads the curves of a run, also of one that goes on or was killed.
/// @param metric  METRIC of any worker, or WORKER.METRIC; nothing = all
/// Errors: io_error (no folder, or the file is not there), malformed_payload (a row that is none, with file and line),
///         limit_exceeded (more than kMostPoints points).
Result<RunCurves> read_run(const std::filesystem::path& run, Axis axis,
                           const std::optional<std::string>& metric = std::nullopt);

}  // namespace caftan::results
