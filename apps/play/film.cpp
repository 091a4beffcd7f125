#include "play/film.hpp"

#include <cstdint>

#include "caftan/base/settings_io.hpp"
#include "caftan/svg/internal/text.hpp"
#include "play/look.hpp"

namespace caftan::play {
namespace {

constexpr double kTop = 28;  // of the title, pixels

std::string colour_of(Part part) {
  const Look look = look_of(part);
  std::string text = "#";
  for (const std::uint8_t shade : {look.red, look.green, look.blue}) {
    text += "0123456789abcdef"[shade / 16];
    text += "0123456789abcdef"[shade % 16];
  }
  return text;
}

std::string shapes_of(const Scene& scene) {
  const Screen screen(scene);
  std::string text;
  const auto x = [&](double value) { return svg::px(screen.x(value)); };
  const auto y = [&](double value) { return svg::px(kTop + screen.y(value)); };
  for (const Stroke& stroke : scene.strokes) {
    text += "<line x1=\"" + x(stroke.from.x) + "\" y1=\"" + y(stroke.from.y) + "\" x2=\"" + x(stroke.to.x) +
            "\" y2=\"" + y(stroke.to.y) + "\" stroke=\"" + colour_of(stroke.part) + "\" stroke-width=\"" +
            svg::px(look_of(stroke.part).width) + "\" stroke-linecap=\"round\"/>";
  }
  for (const Disc& disc : scene.discs) {
    text += "<circle cx=\"" + x(disc.middle.x) + "\" cy=\"" + y(disc.middle.y) + "\" r=\"" +
            svg::px(disc.radius * screen.scale) + "\" fill=\"" + colour_of(disc.part) + "\"/>";
  }
  return text;
}

}  // namespace

Result<std::string> render_film(const std::vector<Scene>& scenes, double per_s, const std::string& title) {
  if (scenes.empty()) return Error(Errc::bad_arguments, "no scene to show");
  if (!(per_s > 0)) return Error(Errc::bad_arguments, "scenes per second: " + format_digits(per_s) + " is not above 0");
  const Screen screen(scenes.front());
  const std::string width = svg::px(kPictureWidth);
  const std::string height = svg::px(screen.height + kTop + 8);
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
