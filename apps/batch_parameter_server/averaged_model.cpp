#include "batch_parameter_server/averaged_model.hpp"

#include <string>
#include <utility>

#include "caftan/nn/gradient_mean.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "image_training/algorithm.hpp"
#include "image_training/learner.hpp"

namespace caftan::batch_parameter_server {

AveragedModel::AveragedModel(std::shared_ptr<models::ImageModel> model, optim::LocalOptimizer optimizer)
    : model_(std::move(model)), parameters_(model_->parameters()), optimizer_(std::move(optimizer)) {}

Result<AveragedModel> AveragedModel::make(models::ModelName name, std::int64_t classes, std::uint64_t seed,
                                          const image_training::OptimizerConfig& optimizer) {
  auto model = models::make_model(name, classes, {.parameters = seed});
  if (!model) return model.error();
  auto made = optim::LocalOptimizer::make({{(*model)->parameters(), algorithm_of(optimizer)}});
  if (!made) return made.error();
  return AveragedModel(*std::move(model), *std::move(made));
}

Result<void> AveragedModel::check(const std::vector<at::Tensor>& gradients) const {
  bool fits = gradients.size() == parameters_.size();
  for (std::size_t i = 0; fits && i < gradients.size(); ++i) {
    fits = gradients[i].defined() && gradients[i].scalar_type() == parameters_[i].scalar_type() &&
           gradients[i].sizes() == parameters_[i].sizes() && gradients[i].layout() == parameters_[i].layout();
  }
  if (!fits) return Error(Errc::bad_arguments, "these are gradients of another model");
  return {};
}

Result<void> AveragedModel::step(const std::vector<const std::vector<at::Tensor>*>& gradients) {
  std::vector<std::vector<at::Tensor>> contributions;
  for (const std::vector<at::Tensor>* const one : gradients) contributions.push_back(*one);
  const auto mean = nn::gradient_mean(contributions);
  if (!mean) return mean.error();
  const auto stepped = optimizer_.step(*mean);
  return stepped ? Result<void>() : Result<void>(stepped.error());
}

std::vector<at::Tensor> AveragedModel::copy_parameters() const { return image_training::copies_of(parameters_); }
std::vector<at::Tensor> AveragedModel::copy_buffers() const { return image_training::copies_of(model_->buffers()); }

Result<void> AveragedModel::load_buffers(const std::vector<at::Tensor>& values) {
  return image_training::copy_into(model_->buffers(), values);
}

Result<void> AveragedModel::resume(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& buffers,
                                   wire::ByteView optimizer) {
  if (auto loaded = checkpoints::load_but_rates(optimizer_, optimizer); !loaded) return loaded;
  if (auto loaded = image_training::copy_into(parameters_, parameters); !loaded) return loaded;
  return load_buffers(buffers);
}

}  // namespace caftan::batch_parameter_server
