#include "play/look.hpp"

#include <algorithm>

namespace caftan::play {

Look look_of(Part part) noexcept {
  switch (part) {
    case Part::ground:
      return {0x88, 0x88, 0x88, 2};
    case Part::body:
      return {0x1f, 0x4e, 0x8c, 8};
    case Part::limb:
      return {0xc4, 0x6a, 0x1b, 5};
    case Part::goal:
      return {0x2e, 0x8b, 0x57, 2};
  }
  return {};
}

Screen::Screen(const Scene& scene) noexcept
    : low(scene.low),
      scale(kPictureWidth / (scene.high.x - scene.low.x)),
      height(std::clamp(scale * (scene.high.y - scene.low.y), 40.0, 2 * kPictureWidth)) {}

}  // namespace caftan::play
