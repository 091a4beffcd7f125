#include "play/film.hpp"

#include <algorithm>
#include <cmath>

#include "caftan/base/settings_io.hpp"
#include "caftan/svg/internal/text.hpp"

namespace caftan::play {
namespace {

const char* colour_of(Part part) noexcept {
  switch (part) {
    case Part::ground:
      return "#888";
    case Part::body:
      return "#1f4e8c";
    case Part::limb:
      return "#c46a1b";
    case Part::goal:
      return "#2e8b57";
  }
  return "#000";
}

/// Places of a scene as pixels.
struct Screen {
  static constexpr double kWidth = 480;
  static constexpr double kTop = 28;  // of the title

  explicit Screen(const Scene& scene)
      : low(scene.low),
        scale(kWidth / (scene.high.x - scene.low.x)),
        height(std::clamp(scale * (scene.high.y - scene.low.y), 40.0, 2 * kWidth)) {}
  std::string x(double value) const { return svg::px((value - low.x) * scale); }
  std::string y(double value) const { return svg::px(kTop + height - (value - low.y) * scale); }

  Place low;
  double scale;
  double height;
};

std::string shapes_of(const Scene& scene) {
  const Screen screen(scene);
  std::string text;
  for (const Stroke& stroke : scene.strokes) {
    const char* const width = stroke.part == Part::body ? "8" : stroke.part == Part::limb ? "5" : "2";
    text += "<line x1=\"" + screen.x(stroke.from.x) + "\" y1=\"" + screen.y(stroke.from.y) + "\" x2=\"" +
            screen.x(stroke.to.x) + "\" y2=\"" + screen.y(stroke.to.y) + "\" stroke=\"" + colour_of(stroke.part) +
            "\" stroke-width=\"" + width + "\" stroke-linecap=\"round\"/>";
  }
  for (const Disc& disc : scene.discs) {
    text += "<circle cx=\"" + screen.x(disc.middle.x) + "\" cy=\"" + screen.y(disc.middle.y) + "\" r=\"" +
            svg::px(disc.radius * screen.scale) + "\" fill=\"" + colour_of(disc.part) + "\"/>";
  }
  return text;
}

}  // namespace

Result<std::string> render_film(const std::vector<Scene>& scenes, double per_s, const std::string& title) {
  if (scenes.empty()) return Error(Errc::bad_arguments, "no scene to show");
  if (!(per_s > 0)) return Error(Errc::bad_arguments, "scenes per second: " + format_digits(per_s) + " is not above 0");
  const Screen screen(scenes.front());
  const std::string width = svg::px(Screen::kWidth);
  const std::string height = svg::px(screen.height + Screen::kTop + 8);
  const auto count = static_cast<double>(scenes.size());
  const std::string duration = format_fixed(count / per_s, 3);
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + height +
                     "\" font-family=\"sans-serif\" font-size=\"14\">\n<rect width=\"" + width + "\" height=\"" +
                     height + "\" fill=\"white\"/>\n<text x=\"8\" y=\"20\">" + svg::escaped(svg::shown(title, 64)) +
                     "</text>\n";
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    const auto at = static_cast<double>(i);
    // A viewer that does not move pictures shows the first scene.
    text += std::string("<g display=\"") + (i == 0 ? "inline" : "none") + "\">" + shapes_of(scenes[i]);
    if (scenes.size() > 1) {
      text += "<animate attributeName=\"display\" calcMode=\"discrete\" repeatCount=\"indefinite\" dur=\"" + duration +
              "s\" values=\"" +
              (i == 0                   ? "inline;none"
               : i + 1 == scenes.size() ? "none;inline"
                                        : "none;inline;none") +
              "\" keyTimes=\"0;" +
              (i == 0                   ? format_fixed(1 / count, 6)
               : i + 1 == scenes.size() ? format_fixed(at / count, 6)
                                        : format_fixed(at / count, 6) + ";" + format_fixed((at + 1) / count, 6)) +
              "\"/>";
    }
    text += "</g>\n";
  }
  return text + "</svg>\n";
}

}  // namespace caftan::play
