#include "caftan/svg/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

#include "caftan/svg/internal/lines.hpp"
#include "caftan/svg/internal/text.hpp"
#include "caftan/svg/internal/ticks.hpp"
#include "caftan/svg/smoothing.hpp"

namespace caftan::svg {
namespace {

// Pixels.
constexpr double kPanelWidth = 560;
constexpr double kPlotHeight = 240;
constexpr double kTitleHeight = 26;
constexpr double kLegendRow = 16;
constexpr double kAxisHeight = 42;
constexpr double kRight = 16;
constexpr double kLeast = 24;       ///< between the panel's edge and the labels of an axis
constexpr double kCharacter = 6.2;  ///< width of a character of 11 pixels; an estimate
constexpr double kSwatch = 30;      ///< width of the line sample in the legend, with the space around it

constexpr std::size_t kMostTitle = 80;  ///< characters
constexpr std::size_t kMostLabel = 70;
constexpr int kTicks = 6;
constexpr const char* kFaint = "0.25";  ///< opacity
constexpr double kRoom = 0.05;          ///< the part of the range of y that is left free above and below

/// Colours that most people distinguish (Okabe and Ito); the lines of the next round are dashed.
constexpr std::array<const char*, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#e69f00", "#56b4e9", "#000000", "#8c564b"};
constexpr std::array<const char*, 4> kDashes{"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 2\"",
                                             " stroke-dasharray=\"8 3 2 3\""};

const char* colour_of(std::size_t series) { return kColours[series % kColours.size()]; }
const char* dash_of(std::size_t series) { return kDashes[series / kColours.size() % kDashes.size()]; }

bool is_drawable(double value, bool is_log) {
  return std::isfinite(value) && std::abs(value) <= kLargest && (!is_log || value >= 1 / kLargest);
}

struct Axis {
  Range range{};
  bool is_log = false;
  double from = 0;  ///< pixel of range.low
  double to = 0;

  /// Returns the pixel of a value, NaN for a value that cannot be drawn.
  double operator()(double value) const {
    return is_drawable(value, is_log) ? at(value) : std::numeric_limits<double>::quiet_NaN();
  }
  /// Returns the pixel of a value within `range`, whose ends may lie beyond the values that can be drawn.
  double at(double value) const {
    const auto place = [this](double of) { return is_log ? std::log10(of) : of; };
    const double low = place(range.low);
    return from + (to - from) * ((place(value) - low) / (place(range.high) - low));
  }
  std::vector<Tick> ticks() const { return is_log ? log_ticks(range, kTicks) : linear_ticks(range, kTicks); }
};

/// Grows as values come.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(const std::vector<double>& values, bool is_log) {
    for (const double value : values) {
      if (!is_drawable(value, is_log)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  bool is_empty() const { return low > high; }
};

Range range_of_y(const Extent& extent, bool is_log) {
  if (extent.is_empty()) return is_log ? Range{1, 10} : Range{0, 1};
  if (!is_log) return padded({extent.low, extent.high}, kRoom);
  const Range powers = padded({std::log10(extent.low), std::log10(extent.high)}, kRoom);
  return {std::pow(10.0, std::max(powers.low, -307.0)), std::pow(10.0, std::min(powers.high, 307.0))};
}

Range range_of_x(const Extent& extent) {
  if (extent.is_empty()) return {0, 1};
  return padded({extent.low, extent.high}, 0);
}

struct LegendEntry {
  std::string label{};
  std::size_t series = 0;
  double x = 0;  ///< distance from the left edge of the panel
  int row = 0;
};

std::vector<LegendEntry> legend_of(const Chart& chart) {
  std::vector<LegendEntry> legend;
  double x = kLeast;
  int row = 0;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    LegendEntry entry{.label = shown(chart.series[i].label, kMostLabel), .series = i};
    if (entry.label.empty()) continue;
    const double width = kSwatch + kCharacter * static_cast<double>(length_of(entry.label));
    if (x > kLeast && x + width > kPanelWidth - kRight) {
      x = kLeast;
      ++row;
    }
    entry.x = x;
    entry.row = row;
    x += width;
    legend.push_back(std::move(entry));
  }
  return legend;
}

int legend_rows(const Chart& chart) {
  const auto legend = legend_of(chart);
  return legend.empty() ? 0 : legend.back().row + 1;
}

std::string text_at(double x, double y, const char* anchor, std::string_view text) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\">" + escaped(text) + "</text>\n";
}

std::string rule(double x1, double y1, double x2, double y2, const char* colour) {
  return "<line x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" + px(x2) + "\" y2=\"" + px(y2) + "\" stroke=\"" +
         colour + "\"/>\n";
}

/// Draws one chart. Its coordinates begin at the upper left corner of its panel.
class Panel {
 public:
  Panel(const Chart& chart, int rows) : chart_(chart), top_(kTitleHeight + kLegendRow * rows) {
    Extent x;
    Extent y;
    for (const Series& series : chart.series) {
      x.add(series.x, false);
      for (const auto* values : {&series.y, &series.low, &series.high}) y.add(*values, chart.log_y);
      for (const FaintLine& line : series.beside) {
        x.add(line.x, false);
        y.add(line.y, chart.log_y);
      }
    }
    is_empty_ = y.is_empty() || x.is_empty();
    y_ = {.range = range_of_y(y, chart.log_y), .is_log = chart.log_y, .from = top_ + kPlotHeight, .to = top_};
    y_ticks_ = y_.ticks();
    std::size_t longest = 0;
    for (const Tick& tick : y_ticks_) longest = std::max(longest, tick.label.size());
    left_ = kLeast + kCharacter * static_cast<double>(longest);
    x_ = {.range = range_of_x(x), .from = left_, .to = kPanelWidth - kRight};
  }

  std::string draw() const {
    std::string out = "<text x=\"" + px(kPanelWidth / 2) +
                      "\" y=\"18\" text-anchor=\"middle\" font-size=\"13\" font-weight=\"bold\">" +
                      escaped(shown(chart_.title, kMostTitle)) + "</text>\n";
    out += draw_legend() + draw_axes();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) out += draw_band(i);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) out += draw_lines(i);
    if (is_empty_) {
      out += text_at((left_ + kPanelWidth - kRight) / 2, top_ + kPlotHeight / 2, "middle",
                     chart_.log_y ? "no finite value above 0" : "no finite value");
    }
    return out;
  }

 private:
  std::string draw_legend() const {
    std::string out;
    for (const LegendEntry& entry : legend_of(chart_)) {
      const double y = kTitleHeight + kLegendRow * entry.row + 8;
      out += "<path d=\"M" + px(entry.x) + "," + px(y) + "h16\" stroke=\"" + colour_of(entry.series) + "\"" +
             dash_of(entry.series) + " stroke-width=\"2\"/>\n";
      out += text_at(entry.x + 20, y + 4, "start", entry.label);
    }
    return out;
  }

  std::string draw_axes() const {
    const double bottom = top_ + kPlotHeight;
    const double right = kPanelWidth - kRight;
    std::string out;
    for (const Tick& tick : y_ticks_) {
      const double y = y_.at(tick.value);
      out += rule(left_, y, right, y, "#e3e3e3") + text_at(left_ - 6, y + 4, "end", tick.label);
    }
    for (const Tick& tick : x_.ticks()) {
      const double x = x_.at(tick.value);
      out += rule(x, top_, x, bottom, "#e3e3e3") + text_at(x, bottom + 15, "middle", tick.label);
    }
    out += rule(left_, bottom, right, bottom, "#666666") + rule(left_, top_, left_, bottom, "#666666");
    return out + text_at((left_ + right) / 2, bottom + 32, "middle", shown(chart_.x_label, kMostTitle));
  }

  /// Returns the points whose x can be drawn.
  std::vector<Point> points_of(const std::vector<double>& x, const std::vector<double>& y) const {
    std::vector<Point> points;
    points.reserve(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (is_drawable(x[i], false)) points.push_back({x_(x[i]), y_(y[i])});
    }
    return points;
  }

  std::vector<double> smooth(const std::vector<double>& values) const {
    return chart_.smooth > 0 ? smoothed(values, chart_.smooth) : values;
  }

  std::string draw_band(std::size_t number) const {
    const Series& series = chart_.series[number];
    if (series.low.empty()) return {};
    std::string out;
    const auto low = points_of(series.x, smooth(series.low));
    const auto high = points_of(series.x, smooth(series.high));
    for (const Line& outline : outlines(low, high)) {
      const std::string colour = colour_of(number);
      out += "<path d=\"" + path_of(outline) + "Z\" fill=\"" + colour + "\" fill-opacity=\"0.18\" stroke=\"" + colour +
             "\" stroke-opacity=\"0.18\"/>\n";
    }
    return out;
  }

  std::string draw_lines(std::size_t number) const {
    const Series& series = chart_.series[number];
    std::string out;
    for (const FaintLine& line : series.beside) out += draw_line(number, points_of(line.x, line.y), kFaint);
    out += draw_line(number, points_of(series.x, series.y), chart_.smooth > 0 ? kFaint : "");
    if (chart_.smooth > 0) out += draw_line(number, points_of(series.x, smooth(series.y)), "");
    return out;
  }

  /// Draws the pieces of a line between its gaps; a piece of one point is a dot.
  static std::string draw_line(std::size_t number, const std::vector<Point>& points, std::string_view opacity) {
    const std::string colour = colour_of(number);
    const std::string faint = opacity.empty() ? "" : " opacity=\"" + std::string(opacity) + "\"";
    std::string out;
    for (const Line& line : thinned(points)) {
      if (line.size() == 1) {
        out += "<circle cx=\"" + px(line.front().x) + "\" cy=\"" + px(line.front().y) + "\" r=\"2.5\" fill=\"" +
               colour + "\"" + faint + "/>\n";
      } else {
        out += "<path d=\"" + path_of(line) + "\" fill=\"none\" stroke=\"" + colour + "\"" + dash_of(number) +
               " stroke-width=\"1.5\" stroke-linejoin=\"round\"" + faint + "/>\n";
      }
    }
    return out;
  }

  const Chart& chart_;
  double top_;
  double left_ = 0;
  Axis x_{};
  Axis y_{};
  std::vector<Tick> y_ticks_;
  bool is_empty_ = false;
};

/// Returns the error of a chart that cannot be drawn; nothing if the chart is right.
std::optional<std::string> fault_of(const Chart& chart) {
  const std::string name = "the chart '" + shown(chart.title, kMostTitle) + "' ";
  if (!(chart.smooth >= 0 && chart.smooth < 1)) return name + "has a smoothing that is not >=0..<1";
  std::size_t points = 0;
  for (const Series& series : chart.series) {
    const std::size_t count = series.x.size();
    const bool has_band = !series.low.empty() || !series.high.empty();
    if (series.y.size() != count || (has_band && (series.low.size() != count || series.high.size() != count))) {
      return name + "has a series '" + shown(series.label, kMostLabel) + "' with arrays of different lengths";
    }
    points += count;
    for (const FaintLine& line : series.beside) {
      if (line.x.size() != line.y.size()) {
        return name + "has a faint line beside '" + shown(series.label, kMostLabel) +
               "' with arrays of different lengths";
      }
      points += line.x.size();
    }
  }
  if (points == 0) return name + "has no point";
  return std::nullopt;
}

}  // namespace

Result<std::string> render(std::span<const Chart> charts, int columns) {
  if (charts.empty()) return Error(Errc::bad_arguments, "there is no chart to draw");
  if (columns < 1) return Error(Errc::bad_arguments, "a picture has at least one column of charts");
  int rows = 0;
  for (const Chart& chart : charts) {
    if (const auto fault = fault_of(chart)) return Error(Errc::bad_arguments, *fault);
    rows = std::max(rows, legend_rows(chart));
  }
  const double panel_height = kTitleHeight + kLegendRow * rows + kPlotHeight + kAxisHeight;
  const auto across = static_cast<std::size_t>(columns);
  const double width = kPanelWidth * static_cast<double>(std::min(across, charts.size()));
  const double height = panel_height * static_cast<double>((charts.size() + across - 1) / across);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + px(width) + " " + px(height) +
                    "\" width=\"" + px(width) + "\" height=\"" + px(height) +
                    "\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222222\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const double x = kPanelWidth * static_cast<double>(i % across);
    const double y = panel_height * static_cast<double>(i / across);
    out += "<g transform=\"translate(" + px(x) + " " + px(y) + ")\">\n" + Panel(charts[i], rows).draw() + "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace caftan::svg
