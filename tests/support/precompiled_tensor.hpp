/// Headers that are compiled once and that the build puts before tests with tensors and without actors. No test relies
/// on this header: each includes what it uses.
#pragma once

#include <ATen/core/Tensor.h>

#include "precompiled_unit.hpp"
