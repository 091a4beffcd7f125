/// Pictures of runs: one chart for each metric, several runs in each chart. Start with `plot`.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "caftan/base/result.hpp"
#include "caftan/results/run_curves.hpp"

namespace caftan::results {

/// Which curves are drawn, and how.
struct PlotOptions {
  Axis axis = Axis::step;               ///< the one that the runs were read with
  std::optional<std::string> metric{};  ///< as for `read_run`; nothing = a chart for each
  double smooth = 0;                    ///< >= 0, < 1: as TensorBoard's
  bool log_y = false;
};

/// Returns the text of an SVG file.
///
/// Runs whose files differ in nothing but run.seed, and whose seeds are all different, are one line: at each x the mean
/// of the runs that have reached it, in a band from the smallest to the largest of them. Between two of its points a
/// run counts with the line between them, before its first and after its last one it does not count. All other runs
/// have lines of their own.
/// Errors: bad_arguments (no run, a metric that no run has, `smooth` out of range, nothing to draw).
Result<std::string> plot(std::span<const RunCurves> runs, const PlotOptions& options);

}  // namespace caftan::results
