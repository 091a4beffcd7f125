#include "image_data/data_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "caftan/wire/checkpoint_file.hpp"
#include "image_data/fashion_mnist.hpp"
#include "image_data/made_images.hpp"

namespace caftan::image_data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFashionImages = 60000;  // of the package; a folder may have any number
constexpr std::int64_t kShapes = 2000;
constexpr std::int64_t kNoises = 600;

/// Keeps the first `count` images.
void cut(ImageSet& set, std::int64_t count) {
  if (set.size() <= count) return;
  set.labels.resize(static_cast<std::size_t>(count));
  set.pixels.resize(static_cast<std::size_t>(count * set.shape.pixels()));
}

/// Fills in what follows from the images. The sums are of integers: exact, in any order.
void measure(DataSet& data) {
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::uint64_t pixel : data.train.pixels) {
    sum += pixel;
    squares += pixel * pixel;
  }
  constexpr double kWhite = 255;
  const auto count = static_cast<double>(data.train.pixels.size());
  const double mean = static_cast<double>(sum) / count;
  const double variance = static_cast<double>(squares) / count - mean * mean;
  data.mean = mean / kWhite;
  data.deviation = variance > 0 ? std::sqrt(variance) / kWhite : 1;
  std::uint32_t checksum = 0;
  for (const auto* bytes : {&data.train.pixels, &data.train.labels, &data.test.pixels, &data.test.labels}) {
    const auto part = wire::crc32c(std::as_bytes(std::span(*bytes)));
    checksum = checksum * 31 + part;
  }
  data.checksum = checksum;
}

}  // namespace

Result<DataSet> read_data(const DataConfig& config) {
  using Name = DataConfig::Name;
  if (config.path && config.name != Name::fashion_mnist) {
    return Error(Errc::invalid_config, "data.path is for fashion-mnist: the program makes the images of this name");
  }
  DataSet data;
  switch (config.name) {
    case Name::fashion_mnist: {
      const fs::path folder = config.path.value_or(fashion_mnist_folder());
      auto read = read_fashion_mnist(folder);
      if (!read) return read.error();
      data.source = "Fashion-MNIST of " + folder.string();
      data.classes = kFashionClasses;
      data.train = std::move(read->train);
      data.test = std::move(read->test);
      break;
    }
    case Name::shapes:
      data.source = "drawings of ten shapes, made by the program";
      data.classes = kShapeClasses;
      data.train = draw_shapes(kShapes, 0);
      data.test = draw_shapes(500, 1);
      break;
    case Name::noise:
      data.source = "noise, made by the program: nothing can be learned";
      data.classes = kNoiseClasses;
      data.train = make_noise(kNoises, 0);
      data.test = make_noise(60, 1);
      break;
  }
  if (config.limit) cut(data.train, *config.limit);
  measure(data);
  return data;
}

std::int64_t most_images(const DataConfig& config) {
  using Name = DataConfig::Name;
  std::int64_t images = config.path ? std::numeric_limits<std::int64_t>::max() : kFashionImages;
  if (config.name == Name::shapes) images = kShapes;
  if (config.name == Name::noise) images = kNoises;
  return std::min(images, config.limit.value_or(images));
}

std::vector<app::MissingRequirement> find_missing(const DataConfig& config, const std::string& table) {
  using Kind = app::MissingRequirement::Kind;
  const std::string name = table + ".name";
  const std::string path = table + ".path";
  if (config.path && config.name != DataConfig::Name::fashion_mnist) {
    return {
        {.keys = {path, table},
         .text = table + ".path is read with name = \"fashion-mnist\" only: the program makes the images of the others",
         .kind = Kind::file}};
  }
  if (config.name != DataConfig::Name::fashion_mnist) return {};
  std::error_code ignored;
  if (!config.path && !fs::exists(fashion_mnist_folder(), ignored)) {
    return {
        {.keys = {name, table},
         .text = "Fashion-MNIST is not on this machine: apt-get install dataset-fashion-mnist (31 MB), name a folder "
                 "that has it with " +
                 path + ", or take the program's own drawings with " + name + " = \"shapes\""}};
  }
  const auto data = read_data(config);
  if (data) return {};
  return {{.keys = {path, name, table}, .text = data.error().text()}};
}

}  // namespace caftan::image_data
