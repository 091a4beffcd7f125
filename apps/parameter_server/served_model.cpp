#include "parameter_server/served_model.hpp"

#include <stdexcept>

namespace caftan::parameter_server {
namespace {

std::shared_ptr<models::ImageModel> make(models::ModelName name, std::int64_t classes,
                                         const models::ModelSeeds& seeds) {
  auto model = models::make_model(name, classes, seeds);
  if (!model) throw std::invalid_argument(model.error().text());
  return *std::move(model);
}

template <class List>
std::vector<nn::NamedTensor> to_named(const List& list) {
  std::vector<nn::NamedTensor> named;
  for (const auto& item : list) named.push_back({item.key(), item.value()});
  return named;
}

}  // namespace

ServedModel::ServedModel(models::ModelName name, std::int64_t classes, std::uint64_t parameters, std::uint64_t dropout)
    : model_(make(name, classes, {.parameters = parameters, .dropout = dropout})) {}

at::Tensor ServedModel::forward(at::Tensor images, std::uint64_t draw) { return model_->forward(images, draw); }

std::vector<nn::NamedTensor> ServedModel::named_parameters() const { return to_named(model_->named_parameters()); }
std::vector<nn::NamedTensor> ServedModel::named_buffers() const { return to_named(model_->named_buffers()); }

}  // namespace caftan::parameter_server
