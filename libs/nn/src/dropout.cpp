#include "caftan/nn/dropout.hpp"

#include <ATen/ops/empty.h>

#include <array>
#include <cmath>
#include <string>

#include "caftan/base/keyed_random.hpp"

namespace caftan::nn {

Result<Dropout> Dropout::make(double probability, std::uint64_t seed) {
  if (!(probability >= 0 && probability < 1)) {
    return Error(Errc::bad_arguments, "a dropout probability is in 0..<1, not " + std::to_string(probability));
  }
  return Dropout(probability, seed);
}

Dropout::Dropout(double probability, std::uint64_t seed)
    : probability_(probability), seed_(seed), drop_below_(static_cast<std::uint32_t>(std::ldexp(probability, 32))) {}

at::Tensor Dropout::forward(const at::Tensor& input, std::uint64_t context, std::uint64_t call,
                            std::uint64_t first) const {
  if (probability_ == 0) return input;
  at::Tensor mask = at::empty(input.sizes(), at::TensorOptions().dtype(at::kFloat));
  auto* const values = mask.mutable_data_ptr<float>();
  const auto size = static_cast<std::size_t>(mask.numel());
  const auto kept = static_cast<float>(1 / (1 - probability_));
  const base::RandomKey key{.seed = seed_, .context = context, .call = call};
  std::array<std::uint32_t, 4> block{};
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t place = first + i;
    if (i == 0 || place % 4 == 0) block = base::random_block(key, place / 4);
    values[i] = block[place % 4] < drop_below_ ? 0.0F : kept;
  }
  return input.mul(mask.to(input.scalar_type()));
}

}  // namespace caftan::nn
