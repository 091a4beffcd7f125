#include "caftan/svg/internal/lines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "caftan/svg/internal/text.hpp"

namespace caftan::svg {
namespace {

/// Returns where the column of pixels of points[begin] ends.
std::size_t end_of_column(std::span<const Point> points, std::size_t begin) {
  const double column = std::floor(points[begin].x);
  std::size_t end = begin + 1;
  while (end < points.size() && std::floor(points[end].x) == column) ++end;
  return end;
}

void append(Line& line, const Point& point) {
  if (line.empty() || line.back() != point) line.push_back(point);
}

/// The points of one column that are no gaps, as indices in the order of the points.
struct Column {
  std::vector<std::size_t> drawn{};
  std::size_t lowest = 0;
  std::size_t highest = 0;
};

Column column_of(std::span<const Point> points, std::size_t begin, std::size_t end) {
  Column column;
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::isfinite(points[i].y)) continue;
    if (column.drawn.empty()) column.lowest = column.highest = i;
    if (points[i].y < points[column.lowest].y) column.lowest = i;
    if (points[i].y > points[column.highest].y) column.highest = i;
    column.drawn.push_back(i);
  }
  return column;
}

}  // namespace

std::vector<Line> thinned(std::span<const Point> points) {
  std::vector<Line> lines;
  bool is_open = false;
  for (std::size_t begin = 0; begin < points.size();) {
    const std::size_t end = end_of_column(points, begin);
    const Column column = column_of(points, begin, end);
    begin = end;
    if (column.drawn.empty()) {
      is_open = false;
      continue;
    }
    if (!is_open) lines.emplace_back();
    is_open = true;
    const auto [first, second] = std::minmax(column.lowest, column.highest);
    for (const std::size_t i : std::array{column.drawn.front(), first, second, column.drawn.back()}) {
      append(lines.back(), points[i]);
    }
  }
  return lines;
}

std::vector<Line> outlines(std::span<const Point> low, std::span<const Point> high) {
  std::vector<Line> areas;
  Line below;
  Line above;
  const auto close = [&] {
    if (above.empty()) return;
    above.insert(above.end(), below.rbegin(), below.rend());
    areas.push_back(std::move(above));
    above.clear();
    below.clear();
  };
  for (std::size_t begin = 0; begin < low.size();) {
    const std::size_t end = end_of_column(low, begin);
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(low[i].y) || !std::isfinite(high[i].y)) continue;
      least = std::min({least, low[i].y, high[i].y});
      most = std::max({most, low[i].y, high[i].y});
    }
    if (least > most) {
      close();
    } else {
      for (const double x : {low[begin].x, low[end - 1].x}) {
        append(below, {x, least});
        append(above, {x, most});
      }
    }
    begin = end;
  }
  close();
  return areas;
}

std::string path_of(const Line& line) {
  std::string path;
  for (const Point& point : line) path += (path.empty() ? "M" : "L") + px(point.x) + "," + px(point.y);
  return path;
}

}  // namespace caftan::svg
