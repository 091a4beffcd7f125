#include "caftan/nn/fill_normal.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace caftan::nn {
namespace {

/// Returns two independent numbers of mean 0 and deviation 1.
std::array<double, 2> normal_pair(std::uint32_t one, std::uint32_t other) {
  const double above_zero = 1 - static_cast<double>(base::uniform_of(one));  // in (0, 1]
  const double radius = std::sqrt(-2 * std::log(above_zero));
  const double angle = 2 * std::numbers::pi * static_cast<double>(base::uniform_of(other));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

void fill_normal(at::Tensor& tensor, const base::RandomKey& key, double mean, double deviation) {
  auto* const values = tensor.mutable_data_ptr<float>();
  const auto size = static_cast<std::size_t>(tensor.numel());
  std::array<double, 4> normal{};
  for (std::size_t i = 0; i < size; ++i) {
    if (i % 4 == 0) {
      const auto block = base::random_block(key, i / 4);
      const auto first = normal_pair(block[0], block[1]);
      const auto second = normal_pair(block[2], block[3]);
      normal = {first[0], first[1], second[0], second[1]};
    }
    values[i] = static_cast<float>(mean + deviation * normal[i % 4]);
  }
  tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace caftan::nn
