/// The images of a pipeline's steps, at the size that its config asks for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "caftan/base/result.hpp"
#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"
#include "image_training/image_tensors.hpp"
#include "pipeline/config.hpp"

namespace caftan::pipeline {

/// Threads: one at a time.
class Images {
 public:
  /// Reads or makes the images. @param seed  the order of the images follows from it
  /// Errors: those of read_data and Batches::make.
  static Result<Images> make(const MasterConfig& config, std::uint64_t seed);

  /// Returns the images of a step, scaled (bilinear). @param step  from 0
  image_training::LabelledImages batch(std::int64_t step);
  /// Lets `classify` have the test images, scaled, the first `count` of them. Errors: those of classify.
  Result<image_training::Accuracy> measure(std::int64_t count, const image_training::Classify& classify) const;

  const image_data::DataSet& data() const noexcept { return data_; }
  /// Returns how many numbers a scaled image has.
  std::int64_t numbers() const noexcept;

 private:
  Images(const MasterConfig& config, image_data::DataSet data, image_data::Batches batches)
      : config_(config), data_(std::move(data)), batches_(std::move(batches)) {}
  at::Tensor scale(const at::Tensor& images) const;

  MasterConfig config_;
  image_data::DataSet data_;
  image_data::Batches batches_;
};

}  // namespace caftan::pipeline
