#include "pipeline/model_part.hpp"

#include <algorithm>
#include <string>

#include "models/mlp.hpp"
#include "models/resnet.hpp"

namespace caftan::pipeline {
namespace {

constexpr std::int64_t kMostClasses = std::int64_t{1} << 16;
constexpr std::int64_t kMostUnits = std::int64_t{1} << 26;  // of the input of an MLP; its other layers have 65536

template <class List>
std::vector<nn::NamedTensor> to_named(const List& list) {
  std::vector<nn::NamedTensor> named;
  for (const auto& item : list) named.push_back({item.key(), item.value()});
  return named;
}

Result<void> check(const ModelSpec& spec, const models::UnitRange& units, std::size_t count) {
  const auto refuse = [](const std::string& what) { return Error(Errc::bad_arguments, "a stage's model has " + what); };
  if (units.first >= units.end || units.end > count) {
    return refuse("the units " + std::to_string(units.first) + " to " + std::to_string(units.end) + " of " +
                  std::to_string(count));
  }
  if (spec.classes < 1 || spec.classes > kMostClasses) {
    return refuse(std::to_string(spec.classes) + " classes");
  }
  if (spec.model != ModelName::mlp) return {};
  if (spec.inputs < 1 || spec.inputs > kMostUnits) return refuse(std::to_string(spec.inputs) + " inputs");
  const auto bad = std::ranges::find_if(spec.hidden, [](std::int64_t size) { return size < 1 || size > 65536; });
  if (bad != spec.hidden.end()) return refuse("a hidden layer of " + std::to_string(*bad) + " units");
  if (auto possible = nn::Dropout::make(spec.dropout, 0); !possible) return possible.error();
  return {};
}

/// Moves the running statistics of all norms with later forwards, or leaves them.
void track(const models::ImageModel& model, bool on) {
  for (const auto& module : model.modules()) {
    if (auto* const norm = module->as<models::BatchNorm2d>()) norm->track(on);
  }
}

}  // namespace

ModelPart::ModelPart(std::shared_ptr<models::Mlp> mlp) : mlp_(std::move(mlp)), model_(mlp_) {}
ModelPart::ModelPart(std::shared_ptr<models::ResNet> resnet) : resnet_(std::move(resnet)), model_(resnet_) {}

Result<ModelPart> ModelPart::make(const ModelSpec& spec, models::UnitRange units) {
  if (!is_valid(spec.model)) return Error(Errc::bad_arguments, "a stage's model has no name");
  const models::ModelSeeds seeds{.parameters = spec.parameter_seed, .dropout = spec.dropout_seed};
  if (spec.model == ModelName::mlp) {
    if (auto possible = check(spec, units, spec.hidden.size() + 1); !possible) return possible.error();
    models::MlpShape shape{.sizes = {spec.inputs}, .dropout = spec.dropout};
    shape.sizes.insert(shape.sizes.end(), spec.hidden.begin(), spec.hidden.end());
    shape.sizes.push_back(spec.classes);
    return ModelPart(std::make_shared<models::Mlp>(shape, seeds, units));
  }
  const auto depth = spec.model == ModelName::resnet18 ? models::ResNetDepth::eighteen : models::ResNetDepth::fifty;
  if (auto possible = check(spec, units, models::ResNet::unit_names(depth).size()); !possible) return possible.error();
  return ModelPart(std::make_shared<models::ResNet>(depth, spec.classes, seeds, units));
}

at::Tensor ModelPart::forward(const at::Tensor& input, const Draw& draw) const {
  return mlp_ ? mlp_->forward_rows(input, draw.step, draw.first_row) : resnet_->forward(input, draw.step);
}

at::Tensor ModelPart::forward_again(const at::Tensor& input, const Draw& draw, bool training) const {
  const bool now = is_training();
  model_->train(training);
  track(*model_, false);
  at::Tensor output = forward(input, draw);
  track(*model_, true);
  model_->train(now);
  return output;
}

Result<void> ModelPart::check_input(at::IntArrayRef sizes) const {
  std::string wanted;
  if (mlp_) {
    std::int64_t row = 1;
    for (std::size_t i = 1; i < sizes.size(); ++i) row *= sizes[i];
    if (sizes.size() > 1 && row == mlp_->inputs()) return {};
    wanted = "[B, " + std::to_string(mlp_->inputs()) + "]";
  } else {
    const std::int64_t channels = resnet_->channels();
    const bool takes_grey = channels == 3;
    if (sizes.size() == 4 && (sizes[1] == channels || (takes_grey && sizes[1] == 1))) return {};
    wanted = "[B, " + std::to_string(channels) + ", H, W]";
  }
  std::string got;
  for (const std::int64_t size : sizes) got += (got.empty() ? "" : ", ") + std::to_string(size);
  return Error(Errc::bad_arguments, "the first layer of this stage takes " + wanted + ", the stage before gave [" +
                                        got + "]: the stages were made for other cuts or images");
}

std::vector<nn::NamedTensor> ModelPart::named_parameters() const { return to_named(model_->named_parameters()); }
std::vector<nn::NamedTensor> ModelPart::named_buffers() const { return to_named(model_->named_buffers()); }
void ModelPart::train(bool on) const { model_->train(on); }
bool ModelPart::is_training() const { return model_->is_training(); }

}  // namespace caftan::pipeline
