/// The models that a file can name. Without libtorch: configs include it.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/base/settings.hpp"

namespace caftan::models {

enum class ModelName : std::uint8_t { convnet, resnet18, resnet50 };

/// Returns the names with what they stand for, for `one_of`.
inline std::vector<SettingChoice> model_choices() {
  return {{"convnet", "two convolutions, 1.2 million parameters, 28x28 grey images"},
          {"resnet18", "11 million parameters, any images"},
          {"resnet50", "24 million parameters, any images"}};
}

inline const char* to_string(ModelName name) noexcept {
  switch (name) {
    case ModelName::convnet:
      return "convnet";
    case ModelName::resnet18:
      return "resnet18";
    default:
      return "resnet50";
  }
}

inline bool is_valid(ModelName name) noexcept { return name <= ModelName::resnet50; }

}  // namespace caftan::models
