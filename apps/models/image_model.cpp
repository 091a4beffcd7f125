#include "models/image_model.hpp"

#include <string>

#include "models/convnet.hpp"
#include "models/resnet.hpp"

namespace caftan::models {

Result<std::shared_ptr<ImageModel>> make_model(ModelName name, std::int64_t classes, const ModelSeeds& seeds) {
  constexpr std::int64_t kMostClasses = std::int64_t{1} << 16;
  if (!is_valid(name)) {
    return Error(Errc::bad_arguments, "there is no model with the number " + std::to_string(static_cast<int>(name)));
  }
  if (classes < 1 || classes > kMostClasses) {
    return Error(Errc::bad_arguments, "a model cannot have " + std::to_string(classes) + " classes");
  }
  if (name == ModelName::convnet) return std::shared_ptr<ImageModel>(std::make_shared<ConvNet>(classes, seeds));
  const ResNetDepth depth = name == ModelName::resnet18 ? ResNetDepth::eighteen : ResNetDepth::fifty;
  return std::shared_ptr<ImageModel>(std::make_shared<ResNet>(depth, classes, seeds));
}

std::int64_t count_parameters(const torch::nn::Module& model) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace caftan::models
