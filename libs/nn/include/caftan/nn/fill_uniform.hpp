/// `fill_uniform`: tensors of random numbers that are a function of a key (caftan/base/keyed_random.hpp), not of
/// torch's process-wide generator.
#pragma once

#include <ATen/core/Tensor.h>

#include "caftan/base/keyed_random.hpp"

namespace caftan::nn {

/// Fills a tensor with numbers in [low, high), element i from position i of the stream, and bumps its version.
/// @param tensor  float32, contiguous, on the CPU (precondition)
void fill_uniform(at::Tensor& tensor, const base::RandomKey& key, double low, double high);

}  // namespace caftan::nn
