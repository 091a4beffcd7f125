/// Tensors of the images of a data set, as the models take them, and how many of them a model classifies rightly.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

#include "caftan/base/result.hpp"
#include "image_data/data_set.hpp"

namespace caftan::image_training {

struct LabelledImages {
  at::Tensor images{};  ///< [B, C, H, W], float32, of mean 0 and deviation 1 over all training images
  at::Tensor labels{};  ///< [B], int64
};

/// @param which  positions in `set`, which is the training or the test part of `data`
LabelledImages take_images(const image_data::DataSet& data, const image_data::ImageSet& set,
                           std::span<const std::int64_t> which);

/// How many images a model has classified rightly.
struct Accuracy {
  std::int64_t right = 0;
  std::int64_t images = 0;

  double share() const noexcept { return images == 0 ? 0 : static_cast<double>(right) / static_cast<double>(images); }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& right& images;
  }
};

/// One of `parts` equal parts of the test images.
struct TestPart {
  std::uint32_t part = 0;
  std::uint32_t parts = 1;  ///< above `part`

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& part& parts;
  }
};

/// The model in evaluation mode, wherever it is. @param images  [B, C, H, W] @return logits [B, classes]
using Classify = std::function<Result<at::Tensor>(const at::Tensor& images)>;

/// Returns how many images of a part of the test images the model classifies rightly.
/// Errors: those of `classify`.
Result<Accuracy> measure_accuracy(const image_data::DataSet& data, const TestPart& part, const Classify& classify);

}  // namespace caftan::image_training
