/// `fill_normal`: tensors of normally distributed numbers that are a function of a key (caftan/base/keyed_random.hpp),
/// not of torch's process-wide generator.
#pragma once

#include <ATen/core/Tensor.h>

#include "caftan/base/keyed_random.hpp"

namespace caftan::nn {

/// Fills a tensor with normally distributed numbers, elements 4i to 4i + 3 from position i of the stream, and bumps its
/// version. No number is farther than 5.8 deviations from the mean: 24 random bits decide how far. The logarithm and
/// the cosine are those of the C library, so another one may give other last bits.
/// @param tensor  float32, contiguous, on the CPU (precondition)
/// Source: Box and Muller 1958, "A note on the generation of random normal deviates", from two numbers each.
void fill_normal(at::Tensor& tensor, const base::RandomKey& key, double mean, double deviation);

}  // namespace caftan::nn
