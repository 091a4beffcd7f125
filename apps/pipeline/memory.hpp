/// How much memory this process has, as the kernel counts it.
#pragma once

#include <cstdint>

namespace caftan::pipeline {

/// Returns the most bytes that were resident at once since `forget_peak_memory`; 0 where the kernel does not say.
std::int64_t peak_memory();
/// Returns the bytes that are resident; 0 where the kernel does not say.
std::int64_t resident_memory();
/// Lets the peak begin anew. Returns false where the kernel does not allow that: the peak then counts from the begin of
/// the process.
bool forget_peak_memory();

}  // namespace caftan::pipeline
