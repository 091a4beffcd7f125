/// `ModelPart`: the units of a model that one stage has.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/nn/named_tensor.hpp"
#include "models/image_model.hpp"
#include "models/units.hpp"
#include "pipeline/config.hpp"

namespace caftan::models {
class Mlp;
class ResNet;
}  // namespace caftan::models

namespace caftan::pipeline {

/// A model as it travels: what decides its first parameters and its dropout masks.
struct ModelSpec {
  ModelName model = ModelName::mlp;
  std::vector<std::int64_t> hidden{};  ///< of mlp
  double dropout = 0;                  ///< of mlp
  std::int64_t inputs = 0;             ///< numbers of an image: of mlp
  std::int64_t classes = 0;
  std::uint64_t parameter_seed = 0;
  std::uint64_t dropout_seed = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& model& hidden& dropout& inputs& classes& parameter_seed& dropout_seed;
  }
};
inline bool is_valid(ModelName name) noexcept { return name <= ModelName::resnet50; }

/// For which rows of which batch a forward is computed.
struct Draw {
  std::uint64_t step = 0;      ///< ordinal of the batch
  std::int64_t first_row = 0;  ///< of the micro-batch, in its batch: it gets its part of the batch's dropout masks
};

/// Threads: one at a time.
class ModelPart {
 public:
  /// Errors: bad_arguments (an impossible size or dropout, or units that the model does not have: a specification may
  ///   come from another worker).
  static Result<ModelPart> make(const ModelSpec& spec, models::UnitRange units);

  /// Runs the units, in the mode that `train` has set.
  at::Tensor forward(const at::Tensor& input, const Draw& draw) const;
  /// As forward, for an input that went through it before: running statistics stay as they are. @param training  mode
  /// of the first time
  at::Tensor forward_again(const at::Tensor& input, const Draw& draw, bool training) const;
  /// Returns why the units cannot take an input of these sizes. Errors: bad_arguments.
  Result<void> check_input(at::IntArrayRef sizes) const;

  std::vector<nn::NamedTensor> named_parameters() const;
  std::vector<nn::NamedTensor> named_buffers() const;
  void train(bool on) const;
  bool is_training() const;

 private:
  explicit ModelPart(std::shared_ptr<models::Mlp> mlp);
  explicit ModelPart(std::shared_ptr<models::ResNet> resnet);

  std::shared_ptr<models::Mlp> mlp_;        // null for a ResNet
  std::shared_ptr<models::ResNet> resnet_;  // null for an MLP
  std::shared_ptr<models::ImageModel> model_;
};

}  // namespace caftan::pipeline
