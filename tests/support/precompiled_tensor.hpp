/// The headers that tests with tensors and without actors include, compiled once. No test relies on this header: each
/// includes what it uses.
#pragma once

#include <ATen/core/Tensor.h>

#include "precompiled_unit.hpp"
