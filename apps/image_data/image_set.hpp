/// `ImageSet`: labelled images as bytes, without libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace caftan::image_data {

struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 0;  ///< pixels
  std::int64_t width = 0;   ///< pixels

  std::int64_t pixels() const noexcept { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& channels& height& width;
  }
};

struct ImageSet {
  ImageShape shape{};
  std::vector<std::uint8_t> pixels{};  ///< [N, channels, height, width], 0 = black
  std::vector<std::uint8_t> labels{};  ///< [N], each below the number of classes

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(labels.size()); }
};

}  // namespace caftan::image_data
