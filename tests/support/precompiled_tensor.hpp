/// What tests with tensors and without actors read first, compiled once. No test relies on this header: each includes
/// what it uses.
#pragma once

#include <ATen/core/Tensor.h>

#include "precompiled_unit.hpp"
