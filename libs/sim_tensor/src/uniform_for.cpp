#include "caftan/sim_tensor/uniform_for.hpp"

#include <ATen/ATen.h>

#include <span>

#include "caftan/base/error.hpp"

namespace caftan::sim {

at::Tensor UniformFor<at::Tensor>::draw(std::uint64_t seed, const at::Tensor& numbers, std::uint64_t ordinal) {
  if (!numbers.defined() || numbers.scalar_type() != at::kLong)
    throw RpcException(Error(Errc::bad_arguments, "uniform_for takes the numbers of agents as an int64 tensor"));
  const at::Tensor plain = numbers.detach().contiguous();
  at::Tensor drawn = at::empty(plain.sizes(), at::kDouble);
  const auto size = static_cast<std::size_t>(plain.numel());
  const auto* const all = reinterpret_cast<const std::uint64_t*>(plain.const_data_ptr<std::int64_t>());
  uniform_for(seed, {all, size}, ordinal, {drawn.data_ptr<double>(), size});
  return drawn;
}

}  // namespace caftan::sim
