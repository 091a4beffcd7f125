#include "image_training/image_tensors.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace caftan::image_training {

LabelledImages take_images(const image_data::DataSet& data, const image_data::ImageSet& set,
                           std::span<const std::int64_t> which) {
  const image_data::ImageShape& shape = set.shape;
  const auto count = static_cast<std::int64_t>(which.size());
  LabelledImages taken{.images = at::empty({count, shape.channels, shape.height, shape.width}),
                       .labels = at::empty({count}, at::kLong)};
  constexpr double kWhite = 255;
  const auto scale = static_cast<float>(1 / (kWhite * data.deviation));
  const auto shift = static_cast<float>(-data.mean / data.deviation);
  auto* pixel = taken.images.mutable_data_ptr<float>();
  auto* label = taken.labels.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t image : which) {
    const std::uint8_t* from = set.pixels.data() + image * shape.pixels();
    pixel = std::transform(from, from + shape.pixels(), pixel,
                           [scale, shift](std::uint8_t value) { return static_cast<float>(value) * scale + shift; });
    *label++ = set.labels[static_cast<std::size_t>(image)];
  }
  return taken;
}

Result<Accuracy> measure_accuracy(const image_data::DataSet& data, const TestPart& part, const Classify& classify) {
  constexpr std::int64_t kBatch = 250;  // images at once: some tens of MB in the larger models
  const std::int64_t all = data.test.size();
  const std::int64_t end = all * (part.part + 1) / part.parts;
  Accuracy accuracy;
  for (std::int64_t first = all * part.part / part.parts; first < end; first += kBatch) {
    std::vector<std::int64_t> which(static_cast<std::size_t>(std::min(kBatch, end - first)));
    std::iota(which.begin(), which.end(), first);
    const LabelledImages taken = take_images(data, data.test, which);
    const auto logits = classify(taken.images);
    if (!logits) return logits.error();
    accuracy.right += logits->argmax(1).eq(taken.labels).sum().item<std::int64_t>();
    accuracy.images += taken.labels.numel();
  }
  return accuracy;
}

}  // namespace caftan::image_training
