#include "image_data/fashion_mnist.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "image_data/gzip_file.hpp"
#include "image_data/idx.hpp"

namespace caftan::image_data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 28;                    // pixels
constexpr std::size_t kMost = std::size_t{1} << 30U;  // bytes of a file: twenty times those of Fashion-MNIST

/// Returns the file of that name in the folder, with ".gz" if there is one.
fs::path find_file(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  const fs::path packed = folder / (name + ".gz");
  const fs::path plain = folder / name;
  return fs::exists(plain, ignored) && !fs::exists(packed, ignored) ? plain : packed;
}

Result<ImageSet> read_images(const fs::path& folder, const std::string& part) {
  const fs::path image_file = find_file(folder, part + "-images-idx3-ubyte");
  auto image_bytes = read_gzip_file(image_file, kMost);
  if (!image_bytes) return image_bytes.error();
  const auto images = read_idx(*image_bytes, 3, image_file.string());
  if (!images) return images.error();
  const auto [count, height, width] = images->sizes;
  if (height != kSide || width != kSide) {
    return Error(Errc::malformed_payload, image_file.string() + ": its images have " + std::to_string(height) + "x" +
                                              std::to_string(width) + " pixels, not 28x28");
  }
  const fs::path label_file = find_file(folder, part + "-labels-idx1-ubyte");
  const auto label_bytes = read_gzip_file(label_file, kMost);
  if (!label_bytes) return label_bytes.error();
  const auto labels = read_idx(*label_bytes, 1, label_file.string());
  if (!labels) return labels.error();
  if (labels->sizes[0] != count) {
    return Error(Errc::malformed_payload, label_file.string() + ": it has " + std::to_string(labels->sizes[0]) +
                                              " labels, " + image_file.filename().string() + " has " +
                                              std::to_string(count) + " images");
  }
  const auto wrong = std::ranges::find_if(labels->values, [](std::uint8_t label) { return label >= kFashionClasses; });
  if (wrong != labels->values.end()) {
    return Error(Errc::malformed_payload,
                 label_file.string() + ": label " + std::to_string(*wrong) + ", there are ten classes, 0..9");
  }
  ImageSet set{.shape = {.channels = 1, .height = kSide, .width = kSide}};
  set.labels.assign(labels->values.begin(), labels->values.end());
  set.pixels.assign(images->values.begin(), images->values.end());
  return set;
}

}  // namespace

fs::path fashion_mnist_folder() { return "/usr/share/datasets/fashion-mnist"; }

Result<TrainAndTest> read_fashion_mnist(const fs::path& folder) {
  auto train = read_images(folder, "train");
  if (!train) return train.error();
  auto test = read_images(folder, "t10k");
  if (!test) return test.error();
  return TrainAndTest{.train = *std::move(train), .test = *std::move(test)};
}

}  // namespace caftan::image_data
