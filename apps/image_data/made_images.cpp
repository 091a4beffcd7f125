#include "image_data/made_images.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "caftan/base/keyed_random.hpp"

namespace caftan::image_data {
namespace {

constexpr std::int64_t kDrawingSide = 28;       // pixels of a drawing
constexpr std::int64_t kPixel = 256;            // units of length of a drawing
constexpr std::int64_t kNoiseSide = 64;         // pixels
constexpr std::uint64_t kShapesSeed = 0x5a9e5;  // part of what the data sets are
constexpr std::uint64_t kNoiseSeed = 0x9015e;

/// Returns a number in [0, below) from position `index` of the key's stream. In integers, as all of a drawing: the same
/// on every machine, whatever the compiler makes of sums and products of floats.
std::int64_t draw_below(std::int64_t below, const base::RandomKey& key, std::uint64_t index) {
  return (std::int64_t{base::random_block(key, index)[0]} * below) >> 32;
}

/// Returns whether the shape of a class covers the point (x, y), where it reaches from -half to half both ways.
bool covers(std::int64_t shape, std::int64_t x, std::int64_t y, std::int64_t half) {
  const std::int64_t ax = std::abs(x);
  const std::int64_t ay = std::abs(y);
  if (ax > half || ay > half) return false;
  const std::int64_t square = x * x + y * y;
  const auto stripe = [half](std::int64_t at) { return (at + half) * 5 / (2 * half + 1) % 2 == 0; };  // five stripes
  switch (shape) {
    case 0:
      return square <= half * half;
    case 1:
      return square <= half * half && 5 * square >= 2 * half * half;
    case 2:
      return true;
    case 3:
      return 5 * std::max(ax, ay) >= 3 * half;
    case 4:
      return 2 * ax <= y + half;
    case 5:
      return 10 * std::min(ax, ay) <= 3 * half;
    case 6:
      return 10 * std::abs(ax - ay) <= 3 * half;
    case 7:
      return stripe(y);
    case 8:
      return stripe(x);
    default:
      return stripe(x) == stripe(y);
  }
}

}  // namespace

ImageSet draw_shapes(std::int64_t count, std::uint64_t part) {
  ImageSet set{.shape = {.channels = 1, .height = kDrawingSide, .width = kDrawingSide}};
  set.pixels.resize(static_cast<std::size_t>(count * set.shape.pixels()));
  set.labels.resize(static_cast<std::size_t>(count));
  std::uint8_t* pixel = set.pixels.data();
  for (std::int64_t image = 0; image < count; ++image) {
    const base::RandomKey key{.seed = kShapesSeed, .context = part, .call = static_cast<std::uint64_t>(image)};
    const std::int64_t shape = image % kShapeClasses;
    set.labels[static_cast<std::size_t>(image)] = static_cast<std::uint8_t>(shape);
    const std::int64_t half = 6 * kPixel + draw_below(5 * kPixel, key, 0);
    const std::int64_t room = kDrawingSide * kPixel - 2 * half;
    const std::int64_t x0 = half + draw_below(room, key, 1);
    const std::int64_t y0 = half + draw_below(room, key, 2);
    const std::int64_t bright = 120 + draw_below(100, key, 3);
    for (std::int64_t i = 0; i < kDrawingSide * kDrawingSide; ++i) {
      const std::int64_t x = i % kDrawingSide * kPixel + kPixel / 2 - x0;
      const std::int64_t y = i / kDrawingSide * kPixel + kPixel / 2 - y0;
      const std::int64_t noise = draw_below(81, key, static_cast<std::uint64_t>(4 + i)) - 40;
      const std::int64_t value = (covers(shape, x, y, half) ? bright : 30) + noise;
      *pixel++ = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
    }
  }
  return set;
}

ImageSet make_noise(std::int64_t count, std::uint64_t part) {
  ImageSet set{.shape = {.channels = 3, .height = kNoiseSide, .width = kNoiseSide}};
  set.pixels.resize(static_cast<std::size_t>(count * set.shape.pixels()));
  set.labels.resize(static_cast<std::size_t>(count));
  constexpr std::size_t kBytesOfABlock = 16;
  const base::RandomKey key{.seed = kNoiseSeed, .context = part};
  for (std::size_t i = 0; i < set.pixels.size(); i += kBytesOfABlock) {
    const std::array<std::uint32_t, 4> block = base::random_block(key, i / kBytesOfABlock);
    for (std::size_t byte = 0; byte < std::min(kBytesOfABlock, set.pixels.size() - i); ++byte) {
      set.pixels[i + byte] = static_cast<std::uint8_t>(block[byte / 4] >> (8 * (byte % 4)));
    }
  }
  const base::RandomKey label_key{.seed = kNoiseSeed, .context = part, .call = 1};
  for (std::size_t i = 0; i < set.labels.size(); ++i) {
    set.labels[i] = static_cast<std::uint8_t>(base::random_block(label_key, i)[0] % kNoiseClasses);
  }
  return set;
}

}  // namespace caftan::image_data
