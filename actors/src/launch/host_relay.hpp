/// The relay of a host: the program, started by ssh from the launcher of another host. It starts the worker processes
/// of its host and passes on what they and the launcher send each other: docs/protocols/launchers.md. `RemoteHost` is
/// the launcher's side.
#pragma once

#include <string>

#include "launch/run_process.hpp"

namespace caftan::actors {

/// Returns whether this process shall be a relay.
bool is_host_relay(int argc, char** argv);
/// Relays until its input ends (LN-10). Threads: the main thread; no other may have been started.
[[noreturn]] void run_host_relay(const WorkerMain& worker_main, const std::string& executable);

}  // namespace caftan::actors
