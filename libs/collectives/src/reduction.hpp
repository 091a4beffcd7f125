/// The arithmetic of collective operations: tensors as one run of values, its chunks, and sums in the order of ranks.
#pragma once

#include <span>
#include <string>

#include "caftan/collectives/internal/group_exchange.hpp"

namespace caftan::collectives {

/// Returns the operation and its tensors as a text that is equal at all members that call the same.
std::string describe(const Operation& operation, const Tensors& tensors);

/// Errors: bad_arguments (no tensor, an undefined one, several dtypes, a dtype that cannot be reduced), unsupported (a
/// tensor that is sparse, quantized or not on the CPU).
Result<void> check_reduced(const Tensors& tensors, Reduction reduction);
/// Errors: bad_arguments (an undefined tensor), unsupported (as check_reduced).
Result<void> check_dense(const Tensors& tensors);

/// Returns all values as one tensor [n] with memory of its own.
at::Tensor flatten(const Tensors& tensors);
/// Returns views of a flat tensor with the sizes of `like`.
Tensors unflatten(const at::Tensor& flat, const Tensors& like);
/// Returns copies with memory of their own and without a graph.
Tensors copies(const Tensors& tensors);

/// Returns chunk `index` of `count` as a view: the first ones are longer by one where the values do not divide evenly.
at::Tensor chunk_of(const at::Tensor& flat, std::size_t index, std::size_t count);

/// Returns ((x0 + x1) + x2) + ..., divided by the number of values for a mean, as a tensor of its own.
/// @param values  at least one, of the same sizes and dtype
at::Tensor reduce(std::span<const at::Tensor> values, Reduction reduction);

/// Returns whether the tensors have the number, sizes and dtypes of `like`.
bool have_form_of(const Tensors& tensors, const Tensors& like);

}  // namespace caftan::collectives
