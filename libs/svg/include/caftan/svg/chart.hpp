/// Line charts as the text of an SVG file: axes with round marks, a grid, a legend, bands around lines. Start with
/// `render`. The same charts give the same bytes, in every locale; pictures have a white background and scale with the
/// page that shows them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::svg {

/// A faint line in the colour of a series; it is never smoothed. Gaps as in a series.
struct FaintLine {
  std::vector<double> x{};  ///< ascending
  std::vector<double> y{};  ///< as many as x
};

/// One line of a chart. Where a number is not finite, is beyond 1e300, or on a logarithmic axis is below 1e-300, the
/// line has a gap.
struct Series {
  std::string label{};              ///< in the legend; any bytes
  std::vector<double> x{};          ///< ascending
  std::vector<double> y{};          ///< as many as x
  std::vector<double> low{};        ///< lower edge of a band around the line, as many as x; empty = no band
  std::vector<double> high{};       ///< upper edge of the band; empty if `low` is empty
  std::vector<FaintLine> beside{};  ///< faint lines that belong to the line, but not to its values
};

/// One pair of axes with the lines in it.
struct Chart {
  std::string title{};  ///< any bytes
  std::string x_label{};
  std::vector<Series> series{};
  bool log_y = false;
  /// Weight of the earlier points in the smoothed line, 0 <= smooth < 1 (smoothing.hpp). The line itself stays visible,
  /// faint.
  double smooth = 0;
};

/// Returns one SVG file with all charts, `columns` side by side. A line of any length takes at most about 30 KB: of the
/// points in one column of pixels the first, the lowest, the highest and the last are drawn.
/// Errors: bad_arguments (no chart, a chart without a point, arrays of different lengths, `smooth` or `columns` out of
///         range). A chart whose points are all gaps says so in the picture.
Result<std::string> render(std::span<const Chart> charts, int columns = 1);

}  // namespace caftan::svg
