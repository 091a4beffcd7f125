/// Fashion-MNIST, and data of the same form: 28x28 grey images of ten classes, in four IDX files.
#pragma once

#include <filesystem>

#include "caftan/base/result.hpp"
#include "image_data/image_set.hpp"

namespace caftan::image_data {

inline constexpr std::int64_t kFashionClasses = 10;

/// Where Debian's package dataset-fashion-mnist has its files.
std::filesystem::path fashion_mnist_folder();

struct TrainAndTest {
  ImageSet train{};
  ImageSet test{};
};

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, and the same with t10k, each with or without ".gz".
/// Source: https://github.com/zalandoresearch/fashion-mnist (MIT licence).
/// Errors, naming the file: those of read_gzip_file and read_idx; malformed_payload (images of another size than 28x28,
///   another number of labels than of images, a label above 9).
Result<TrainAndTest> read_fashion_mnist(const std::filesystem::path& folder);

}  // namespace caftan::image_data
