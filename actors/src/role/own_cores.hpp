/// Which cores a worker process keeps to. Rule: docs/protocols/run.md, RN-25.
#pragma once

#include <string>
#include <vector>

#include "caftan/app/internal/plan.hpp"

namespace caftan::actors {

/// What a process keeps to; no cores: to none.
struct OwnCores {
  std::vector<int> cores{};  ///< their numbers in the system, ascending
  std::string text{};        ///< "on core 1 of 2 (run.own_cores)", "on cores 4-7 of 8 (run.own_cores)"
};

/// Divides the cores between the processes of a host whose workers have cores of their own.
/// @param worker   of the process
/// @param allowed  cores that the process may use now, ascending
OwnCores own_cores(const app::Plan& plan, const app::PlannedWorker& worker, const std::vector<int>& allowed);

/// Returns the cores that this process may use, ascending; none on a machine with more than 1,024 cores.
std::vector<int> allowed_cores();

/// Keeps the calling thread, and the threads that it starts, to these cores. A system that refuses leaves all as it is.
void keep_to(const std::vector<int>& cores);

}  // namespace caftan::actors
