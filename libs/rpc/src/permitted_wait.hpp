/// Waits for one future, and distinguishes a time-out from a wait that was not permitted.
#pragma once

#include "caftan/rpc/future_state.hpp"

namespace caftan::rpc {

/// As FutureCore::wait.
/// Errors: overloaded (too many runners wait already), would_deadlock (inside a brief function); the future stays as it
/// is.
Result<bool> permitted_wait(FutureCore& future, base::TimePoint deadline);

/// For a wait whose result is ready before it begins: gives the turn of the running code to the oldest queued job where
/// a real wait would (CALL-7), so that a method that loops over quick calls shares its object. May block like any wait.
void end_wait_at_once();

}  // namespace caftan::rpc
