#include "caftan/svg/internal/gantt.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "caftan/svg/internal/text.hpp"
#include "caftan/svg/internal/ticks.hpp"

namespace caftan::svg {
namespace {

// Pixels.
constexpr double kGanttWidth = 900;
constexpr double kGanttRight = 16;
constexpr double kGanttTop = 52;  ///< title and legend
constexpr double kRowHeight = 34;
constexpr double kBoxHeight = 24;
constexpr double kGanttAxis = 42;
constexpr double kGanttCharacter = 6.2;  ///< width of a character of 11 pixels; an estimate
constexpr std::size_t kMostCharacters = 60;
constexpr int kGanttTicks = 10;

constexpr std::array<const char*, 6> kBoxColours{"#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#8c564b", "#999999"};

std::string text_in(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\">" + escaped(text) + "</text>\n";
}

/// Returns why the chart cannot be drawn; empty if it can.
std::string fault_in(const Gantt& gantt) {
  bool has_box = false;
  for (const GanttRow& row : gantt.rows) {
    for (const GanttBox& box : row.boxes) {
      const std::string name =
          "the box '" + shown(box.label, kMostCharacters) + "' of the row '" + shown(row.label, kMostCharacters) + "' ";
      if (box.kind >= gantt.kinds.size()) return name + "has a kind without a name";
      if (!(std::abs(box.begin) <= kLargest && std::abs(box.end) <= kLargest)) return name + "has no finite times";
      if (box.end < box.begin) return name + "ends before it begins";
      has_box = true;
    }
  }
  return has_box ? std::string() : "a Gantt chart without a box";
}

/// Where times are on the picture.
class TimeAxis {
 public:
  explicit TimeAxis(const Gantt& gantt) {
    Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    std::size_t longest = 0;
    for (const GanttRow& row : gantt.rows) {
      longest = std::max(longest, length_of(shown(row.label, kMostCharacters)));
      for (const GanttBox& box : row.boxes) {
        range.low = std::min(range.low, box.begin);
        range.high = std::max(range.high, box.end);
      }
    }
    range_ = padded(range, 0);
    left_ = 16 + kGanttCharacter * static_cast<double>(longest);
  }
  double left() const noexcept { return left_; }
  double operator()(double time) const noexcept {
    return left_ + (kGanttWidth - kGanttRight - left_) * ((time - range_.low) / (range_.high - range_.low));
  }
  std::string draw(double bottom, const std::string& label) const {
    std::string out;
    for (const Tick& tick : linear_ticks(range_, kGanttTicks)) {
      const double x = (*this)(tick.value);
      out += "<line x1=\"" + px(x) + "\" y1=\"" + px(kGanttTop) + "\" x2=\"" + px(x) + "\" y2=\"" + px(bottom) +
             "\" stroke=\"#e3e3e3\"/>\n" + text_in(x, bottom + 15, "middle", tick.label);
    }
    return out + text_in((left_ + kGanttWidth - kGanttRight) / 2, bottom + 32, "middle", shown(label, kMostCharacters));
  }

 private:
  Range range_{};
  double left_ = 0;
};

std::string draw_box(const GanttBox& box, const std::string& kind, const TimeAxis& axis, double top) {
  const double x = axis(box.begin);
  const double width = std::max(axis(box.end) - x, 0.5);  // what is short can be seen, too
  const std::string label = shown(box.label, kMostCharacters);
  std::string out = "<rect x=\"" + px(x) + "\" y=\"" + px(top) + "\" width=\"" + px(width) + "\" height=\"" +
                    px(kBoxHeight) + "\" fill=\"" + kBoxColours[box.kind % kBoxColours.size()] +
                    "\" stroke=\"#ffffff\" stroke-width=\"0.5\"><title>" + escaped(kind + " " + label) + ": " +
                    px(box.begin) + " to " + px(box.end) + "</title></rect>\n";
  if (kGanttCharacter * static_cast<double>(length_of(label)) <= width) {
    out += text_in(x + width / 2, top + kBoxHeight / 2 + 4, "middle", label);
  }
  return out;
}

std::string draw_kinds(const std::vector<std::string>& kinds, double left) {
  std::string out;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const std::string name = shown(kinds[kind], kMostCharacters);
    out += "<rect x=\"" + px(left) + "\" y=\"30\" width=\"12\" height=\"12\" fill=\"" +
           kBoxColours[kind % kBoxColours.size()] + "\"/>\n" + text_in(left + 17, 40, "start", name);
    left += 36 + kGanttCharacter * static_cast<double>(length_of(name));
  }
  return out;
}

}  // namespace

Result<std::string> render(const Gantt& gantt) {
  if (const std::string fault = fault_in(gantt); !fault.empty()) return Error(Errc::bad_arguments, fault);
  const TimeAxis axis(gantt);
  const double bottom = kGanttTop + kRowHeight * static_cast<double>(gantt.rows.size());
  const std::string height = px(bottom + kGanttAxis);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + px(kGanttWidth) + " " + height +
                    "\" width=\"" + px(kGanttWidth) + "\" height=\"" + height +
                    "\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222222\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
                    "<text x=\"" +
                    px(kGanttWidth / 2) + "\" y=\"18\" text-anchor=\"middle\" font-size=\"13\" font-weight=\"bold\">" +
                    escaped(shown(gantt.title, 2 * kMostCharacters)) + "</text>\n";
  out += draw_kinds(gantt.kinds, axis.left()) + axis.draw(bottom, gantt.x_label);
  double top = kGanttTop + (kRowHeight - kBoxHeight) / 2;
  for (const GanttRow& row : gantt.rows) {
    out += text_in(axis.left() - 6, top + kBoxHeight / 2 + 4, "end", shown(row.label, kMostCharacters));
    for (const GanttBox& box : row.boxes) out += draw_box(box, gantt.kinds[box.kind], axis, top);
    top += kRowHeight;
  }
  return out + "</svg>\n";
}

}  // namespace caftan::svg
