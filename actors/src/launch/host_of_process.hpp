/// Which host of the file this process is, when a launcher of the cluster has started it.
#pragma once

#include <string>

#include "caftan/app/internal/application.hpp"
#include "caftan/base/result.hpp"

namespace caftan::actors {

/// Returns the name of the host, and fills in the addresses that the file leaves to the launcher (LN-3). Looks the
/// first host's name up until run.start_timeout, as names of a cluster may appear late. Precondition: a launcher that
/// gives addresses. Errors: invalid_config (as of launchers::find_slot and take_slot), io_error (the first host's name
/// is unknown, or no network leads there). Threads: one, before any other was started. Blocks.
Result<std::string> host_of_process(app::Application& application);

/// Replaces the address of a host of this machine by that of its interface, where the file names one.
/// Errors: invalid_config (no such interface here, or it has no address; the text names those there are).
Result<void> take_interface(app::HostSpec& host);

}  // namespace caftan::actors
