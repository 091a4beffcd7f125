/// Which cores a worker process keeps to. Rule: docs/protocols/run.md, RN-25.
#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "caftan/app/internal/plan.hpp"

namespace caftan::actors {

/// What a process keeps to; no cores: to none.
struct OwnCores {
  std::vector<int> cores{};  ///< their numbers in the system, ascending
  std::string text{};        ///< "on 1 of 2 cores: 1 (run.own_cores)", "on 2 of 4 cores: 4, 6 (run.own_cores)"
};

/// Divides the cores between the processes of a host whose workers have cores of their own.
/// @param worker   of the process
/// @param allowed  cores that the process may use now, ascending
OwnCores own_cores(const app::Plan& plan, const app::PlannedWorker& worker, const std::vector<int>& allowed);

/// Returns the cores that this process may use, ascending; none on a machine with more than 1,024 cores.
std::vector<int> allowed_cores();

/// Keeps the calling thread, and the threads that it starts, to these cores. Returns the error of a system that refuses
/// it, which leaves all as it is. Precondition: at least one core.
std::error_code keep_to(const std::vector<int>& cores);

}  // namespace caftan::actors
