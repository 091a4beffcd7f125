/// Lines in pixels: reduces a series of any length to the points that can be seen.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace caftan::svg {

/// In pixels; a point whose y is not finite is a gap.
struct Point {
  double x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};
using Line = std::vector<Point>;

/// Returns the pieces between gaps. Of the points in one column of pixels the first, the lowest, the highest and the
/// last stay; a gap counts where a column has nothing else.
/// @param points  x ascending and finite
std::vector<Line> thinned(std::span<const Point> points);

/// Returns the outlines of the area between two edges, piece by piece: forward along `high`, back along `low`.
/// @param low   x ascending and finite
/// @param high  as many, with the same x; a gap in one edge is one in both
std::vector<Line> outlines(std::span<const Point> low, std::span<const Point> high);

/// Returns the path data "M1,2L3,4".
std::string path_of(const Line& line);

}  // namespace caftan::svg
