/// `Mlp`: linear layers with ReLU and dropout between them, for images of one size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caftan/nn/dropout.hpp"
#include "models/image_model.hpp"
#include "models/layers.hpp"
#include "models/units.hpp"

namespace caftan::models {

struct MlpShape {
  std::vector<std::int64_t> sizes{};  ///< units of the input, of each hidden layer, and of the result: two at least
  double dropout = 0;                 ///< behind each hidden layer, 0..<1
};

/// Parameters under the names fc1, fc2, ... Each layer is a unit, with the ReLU and the dropout behind it.
class Mlp final : public ImageModel {
 public:
  /// @param units  as of ResNet
  Mlp(const MlpShape& shape, const ModelSeeds& seeds, UnitRange units = {});
  /// As `forward_rows` of a whole batch.
  at::Tensor forward(const at::Tensor& images, std::uint64_t draw) override { return forward_rows(images, draw, 0); }
  /// Runs the units that the model has.
  /// @param input  [rows, ...], flattened to [rows, units of the input]
  /// @param first_row  place of the first row in its batch: rows get the dropout masks that they have in the batch
  at::Tensor forward_rows(const at::Tensor& input, std::uint64_t draw, std::int64_t first_row);

  /// Returns the size of a row that the first unit takes.
  std::int64_t inputs() const noexcept { return inputs_; }

  /// Returns "fc1", "fc2", ... @param layers  at least 1
  static std::vector<std::string> unit_names(std::size_t layers);

 private:
  struct Layer {
    std::shared_ptr<Linear> linear;
    std::size_t number;  // from 0, in the whole model
  };

  std::vector<Layer> layers_;
  std::size_t last_;  // number of the last layer of the whole model: nothing is behind it
  std::int64_t inputs_ = 0;
  nn::Dropout dropout_;
};

}  // namespace caftan::models
