#include "play/terminal.hpp"

#include <algorithm>
#include <cmath>

namespace caftan::play {
namespace {

char mark_of(Part part) noexcept {
  switch (part) {
    case Part::ground:
      return '_';
    case Part::body:
      return 'O';
    case Part::limb:
      return '#';
    case Part::goal:
      return '*';
  }
  return ' ';
}

/// Marks characters by places of a scene.
class Canvas {
 public:
  Canvas(const Scene& scene, int columns, int rows)
      : low_(scene.low),
        scale_(std::min(columns / (scene.high.x - scene.low.x), 2 * rows / (scene.high.y - scene.low.y))),
        left_((columns - scale_ * (scene.high.x - scene.low.x)) / 2),
        lines_(static_cast<std::size_t>(rows), std::string(static_cast<std::size_t>(columns), ' ')) {}

  void mark(Place place, char character) {
    const double column = left_ + (place.x - low_.x) * scale_;
    const double row = static_cast<double>(lines_.size()) - (place.y - low_.y) * scale_ / 2;
    if (!(column >= 0) || !(row >= 0)) return;
    const auto x = static_cast<std::size_t>(column);
    const auto y = static_cast<std::size_t>(row);
    if (y < lines_.size() && x < lines_[y].size()) lines_[y][x] = character;
  }
  double scale() const noexcept { return scale_; }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  Place low_;
  double scale_;  // characters of width for a unit
  double left_;   // characters before the scene
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> render_text(const Scene& scene, int columns, int rows) {
  Canvas canvas(scene, columns, rows);
  for (const Stroke& stroke : scene.strokes) {
    const double length = std::hypot(stroke.to.x - stroke.from.x, stroke.to.y - stroke.from.y);
    const int steps = std::clamp(static_cast<int>(2 * length * canvas.scale()), 1, 4 * (columns + rows));
    for (int step = 0; step <= steps; ++step) {
      const double share = static_cast<double>(step) / steps;
      canvas.mark({stroke.from.x + share * (stroke.to.x - stroke.from.x),
                   stroke.from.y + share * (stroke.to.y - stroke.from.y)},
                  mark_of(stroke.part));
    }
  }
  for (const Disc& disc : scene.discs) canvas.mark(disc.middle, mark_of(disc.part));
  return canvas.take();
}

}  // namespace caftan::play
