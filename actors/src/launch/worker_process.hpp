/// What a worker process of a run does: a copy of the launcher, or the program, started again with the argument
/// "caftan-worker".
#pragma once

#include "caftan/actors/role_catalog.hpp"

namespace caftan::actors {

/// Returns whether the command line is that of a worker process.
bool is_worker_process(int argc, char** argv);

/// Reads from the inherited control socket which workers this process is, runs these workers, and exits the process;
/// exits at once when the launcher is gone. Threads: the main thread, before any other was started.
[[noreturn]] void run_worker_process(const RoleCatalog& catalog, const app::RoleTypes& types);

}  // namespace caftan::actors
