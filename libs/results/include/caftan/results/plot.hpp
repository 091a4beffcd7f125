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
  Axis axis = Axis::step;               ///< the axis with which the runs were read
  std::optional<std::string> metric{};  ///< as for `read_run`; nothing = a chart for each
  double smooth = 0;                    ///< >= 0, < 1: as TensorBoard's
  bool log_y = false;
};

/// Returns the text of an SVG file.
///
/// Runs whose files differ in nothing but run.seed, and whose seeds are all different, are one line: the mean of all of
/// them, in a band from the smallest to the largest. Between two of its points a run counts with the line between them.
/// Where one of them has no value, before its first point, after its last one or in a gap, there is no mean: each of
/// the others goes on as a faint line. All other runs have lines of their own. The legend names each line after the
/// settings in which it differs from the others, if these are four at most.
/// Errors: bad_arguments (no run, a metric that no run has, `smooth` out of range, nothing to draw).
Result<std::string> plot(std::span<const RunCurves> runs, const PlotOptions& options);

}  // namespace caftan::results
