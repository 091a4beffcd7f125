/// What simulations do with tensors beyond sim: random numbers for all agents of a tensor at once, by
/// `lp.uniform_for(numbers, tick)`. Tensors in events and in the state of processes need no more than `serialize`: they
/// are written whole, so that no memory is shared (SM-11).
#pragma once

#include <cstdint>

#include "caftan/sim/model.hpp"
#include "caftan/tensor/tensor.hpp"

/// How `LpContext::uniform_for` draws for a tensor.
template <>
struct caftan::sim::UniformFor<at::Tensor> {
  /// Returns a float64 tensor of the shape of `numbers`, with values in [0, 1): each a function of the seed, the number
  /// and the ordinal, so that the same agents draw the same in every layout.
  /// @param numbers  int64, any shape
  /// Errors (thrown as RpcException): bad_arguments (another dtype).
  static at::Tensor draw(std::uint64_t seed, const at::Tensor& numbers, std::uint64_t ordinal);
};
