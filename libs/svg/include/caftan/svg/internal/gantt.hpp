/// Gantt charts as the text of an SVG file: rows of boxes over one axis of time. Start with `render`. The same chart
/// gives the same bytes, in every locale.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::svg {

/// Something that took from `begin` to `end`.
struct GanttBox {
  double begin = 0;
  double end = 0;        ///< >= begin
  std::size_t kind = 0;  ///< place in Gantt::kinds, which decides the colour
  std::string label{};   ///< in the box where it fits, and in the text that a browser shows for the box; any bytes
};

struct GanttRow {
  std::string label{};  ///< before the row; any bytes
  std::vector<GanttBox> boxes{};
};

struct Gantt {
  std::string title{};  ///< any bytes
  std::string x_label{};
  std::vector<std::string> kinds{};  ///< of boxes, for the legend
  std::vector<GanttRow> rows{};
};

/// Returns one SVG file with the chart; its axis reaches from the first begin to the last end.
/// Errors: bad_arguments (no box, a box of a kind that is not named, a box that ends before it begins or at no finite
///   time).
Result<std::string> render(const Gantt& gantt);

}  // namespace caftan::svg
