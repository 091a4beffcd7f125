/// The executor of a process that computes with torch.
#pragma once

#include <memory>

#include "caftan/transport/threaded_executor.hpp"

namespace caftan::actors {

/// Calls one function of the vector math library, once per process: to be done before other threads may.
void warm_up_vector_math();

/// Returns an executor whose threads use as many intra-op threads as the calling one. ATen hands its number on by
/// itself, but only where it splits the work: BLAS and oneDNN ask OpenMP, which starts each thread with all cores.
/// @param workers  that live on it: run() of each role may wait, and as many calls as for one worker
/// @param spin  which of its threads wait without sleep
std::shared_ptr<transport::ThreadedExecutor> make_runners(std::size_t workers = 1,
                                                          const transport::SpinOptions& spin = {});

}  // namespace caftan::actors
