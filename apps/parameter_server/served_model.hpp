/// `ServedModel`: an image model as the server shares it, whichever the file names.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/nn/named_tensor.hpp"
#include "models/image_model.hpp"

namespace caftan::parameter_server {

/// Threads: one at a time.
class ServedModel {
 public:
  /// @param name     as a number: it travels
  /// @param parameters, dropout  seeds, as ModelSeeds has them
  /// Throws std::invalid_argument (no such model or number of classes).
  ServedModel(models::ModelName name, std::int64_t classes, std::uint64_t parameters, std::uint64_t dropout);

  /// As ImageModel::forward.
  at::Tensor forward(at::Tensor images, std::uint64_t draw);

  std::vector<nn::NamedTensor> named_parameters() const;
  std::vector<nn::NamedTensor> named_buffers() const;
  void train(bool on) { model_->train(on); }

 private:
  std::shared_ptr<models::ImageModel> model_;
};

/// Returns the draw of a trainer's step: two steps with one draw would drop the same units.
constexpr std::uint64_t draw_of(std::uint32_t trainer, std::int64_t step) noexcept {
  constexpr unsigned kStepBits = 40;
  return (std::uint64_t{trainer} << kStepBits) | static_cast<std::uint64_t>(step);
}

}  // namespace caftan::parameter_server
