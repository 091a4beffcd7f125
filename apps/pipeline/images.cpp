#include "pipeline/images.hpp"

#include <ATen/ops/upsample_bilinear2d.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace caftan::pipeline {

Result<Images> Images::make(const MasterConfig& config, std::uint64_t seed) {
  auto data = image_data::read_data(config.data);
  if (!data) return data.error();
  auto batches = image_data::Batches::make(
      {.images = data->train.size(), .batch = config.batch, .partition = config.data.partition, .seed = seed});
  if (!batches) return batches.error();
  return Images(config, *std::move(data), *std::move(batches));
}

at::Tensor Images::scale(const at::Tensor& images) const {
  if (!config_.image_size) return images;
  const std::int64_t side = *config_.image_size;
  return at::upsample_bilinear2d(images, {side, side}, /*align_corners=*/false);
}

image_training::LabelledImages Images::batch(std::int64_t step) {
  auto taken = image_training::take_images(data_, data_.train, batches_.at(step));
  taken.images = scale(taken.images);
  return taken;
}

Result<image_training::Accuracy> Images::measure(std::int64_t count, const image_training::Classify& classify) const {
  constexpr std::int64_t kAtOnce = 50;  // images: what a stage has in memory, too
  const std::int64_t all = std::min(count, data_.test.size());
  image_training::Accuracy accuracy;
  for (std::int64_t first = 0; first < all; first += kAtOnce) {
    std::vector<std::int64_t> which(static_cast<std::size_t>(std::min(kAtOnce, all - first)));
    std::iota(which.begin(), which.end(), first);
    const auto taken = image_training::take_images(data_, data_.test, which);
    const auto logits = classify(scale(taken.images));
    if (!logits) return logits.error();
    accuracy.right += logits->argmax(1).eq(taken.labels).sum().item<std::int64_t>();
    accuracy.images += taken.labels.numel();
  }
  return accuracy;
}

std::int64_t Images::numbers() const noexcept {
  const image_data::ImageShape& shape = data_.train.shape;
  return config_.image_size ? shape.channels * *config_.image_size * *config_.image_size : shape.pixels();
}

}  // namespace caftan::pipeline
