/// Arithmetic and comparison of tensors with each other and with numbers: `a + b`, `2 * a`, `a < 0`.
#pragma once

#include <ATen/TensorOperators.h>

#include "caftan/tensor/tensor.hpp"
