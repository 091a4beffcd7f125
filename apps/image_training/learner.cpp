#include "image_training/learner.hpp"

#include <ATen/ops/cross_entropy_loss.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <utility>

namespace caftan::image_training {

Result<void> copy_into(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& values) {
  bool fits = tensors.size() == values.size();
  for (std::size_t i = 0; fits && i < values.size(); ++i) {
    fits = values[i].defined() && values[i].scalar_type() == tensors[i].scalar_type() &&
           values[i].sizes() == tensors[i].sizes();
  }
  if (!fits) return Error(Errc::bad_arguments, "these are tensors of another model");
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i) tensors[i].copy_(values[i]);
  return {};
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

Learner::Learner(std::shared_ptr<models::ImageModel> model, const image_data::DataSet& data,
                 image_data::Batches batches)
    : model_(std::move(model)), data_(&data), batches_(std::move(batches)) {}

Result<void> Learner::load_parameters(const std::vector<at::Tensor>& values) {
  return copy_into(model_->parameters(), values);
}
Result<void> Learner::load_buffers(const std::vector<at::Tensor>& values) {
  return copy_into(model_->buffers(), values);
}
std::vector<at::Tensor> Learner::copy_buffers() const { return copies_of(model_->buffers()); }

Gradients Learner::compute(std::int64_t step) {
  const LabelledImages taken = take_images(*data_, data_->train, batches_.at(step));
  const c10::AutoGradMode recorded(true);
  model_->train();
  const at::Tensor logits = model_->forward(taken.images, static_cast<std::uint64_t>(step));
  const at::Tensor loss = at::cross_entropy_loss(logits, taken.labels);
  const auto gradients = torch::autograd::grad({loss}, model_->parameters());
  return {.loss = loss.item<double>(), .values = {gradients.begin(), gradients.end()}};
}

Accuracy Learner::measure(const TestPart& part) {
  const c10::NoGradGuard no_grad;
  model_->eval();
  // The classifier below never fails.
  return measure_accuracy(*data_, part,
                          [this](const at::Tensor& images) -> Result<at::Tensor> { return model_->forward(images, 0); })
      .value();
}

}  // namespace caftan::image_training
