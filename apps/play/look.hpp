/// How the parts of a scene look in a picture, and where its places are there; film.hpp and gif.hpp draw it.
#pragma once

#include <cstdint>

#include "play/scene.hpp"

namespace caftan::play {

/// The width of a picture, in pixels.
inline constexpr double kPictureWidth = 480;

struct Look {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  double width = 0;  ///< of a stroke, in pixels
};

Look look_of(Part part) noexcept;

/// Places of a scene as pixels: (0, 0) is the upper left corner.
struct Screen {
  explicit Screen(const Scene& scene) noexcept;
  double x(double value) const noexcept { return (value - low.x) * scale; }
  double y(double value) const noexcept { return height - (value - low.y) * scale; }

  Place low;
  double scale;   ///< pixels of a unit
  double height;  ///< of the picture, 40 .. 960 pixels
};

}  // namespace caftan::play
