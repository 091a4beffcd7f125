/// Waiting for one future where the difference between late and refused matters.
#pragma once

#include "caftan/rpc/future_state.hpp"

namespace caftan::rpc {

/// As FutureCore::wait.
/// Errors: overloaded (too many runners wait already; the future stays as it is).
Result<bool> permitted_wait(FutureCore& future, TimePoint deadline);

}  // namespace caftan::rpc
