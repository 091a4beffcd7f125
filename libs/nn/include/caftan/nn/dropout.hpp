/// `Dropout` whose masks are a function of a key, not of torch's process-wide generator: the same in every placement,
/// in every order of calls and after a resume.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "caftan/base/result.hpp"

namespace caftan::nn {

/// Source: torch.nn.Dropout. Difference: a mask is a function of (root seed, role, replica; context; call), so that
/// only the root seed and ordinals need saving. Threads: any.
class Dropout {
 public:
  /// @param probability  of dropping an element, 0..<1
  /// @param seed         of (root seed, role, replica), as RoleContext::seed("dropout") gives it
  /// Errors: bad_arguments (another probability).
  static Result<Dropout> make(double probability, std::uint64_t seed);

  /// Returns the input with elements dropped and the others scaled by 1 / (1 - probability), of its shape; recorded by
  /// autograd like any product. With probability 0 the input itself.
  /// @param input    floating point, on the CPU, any shape
  /// @param context  ordinal of the training step
  /// @param call     ordinal of this use within the step, by this role; two uses with equal ordinals drop the same
  /// @param first    place of the first element of `input` in the tensor that the mask is for: a part of a batch gets
  ///                 its part of the batch's mask
  /// Errors (thrown): torch's, as all of its operators.
  at::Tensor forward(const at::Tensor& input, std::uint64_t context, std::uint64_t call, std::uint64_t first = 0) const;

 private:
  Dropout(double probability, std::uint64_t seed);

  double probability_;
  std::uint64_t seed_;
  std::uint32_t drop_below_;  ///< an element is dropped if its 32 random bits are below this
};

}  // namespace caftan::nn
