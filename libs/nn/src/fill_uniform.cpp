#include "caftan/nn/fill_uniform.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace caftan::nn {

void fill_uniform(at::Tensor& tensor, const base::RandomKey& key, double low, double high) {
  auto* const values = tensor.mutable_data_ptr<float>();
  const auto size = static_cast<std::size_t>(tensor.numel());
  const auto start = static_cast<float>(low);
  const auto width = static_cast<float>(high - low);
  std::array<std::uint32_t, 4> block{};
  for (std::size_t i = 0; i < size; ++i) {
    if (i % 4 == 0) block = base::random_block(key, i / 4);
    values[i] = start + width * base::uniform_of(block[i % 4]);
  }
  tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace caftan::nn
