/// What WorkerOptions mean for the parts of a worker.
#pragma once

#include "caftan/actors/worker.hpp"
#include "caftan/net/internal/meeting.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::actors {

/// Checks the options and returns the job as this worker knows it before it starts, with a new random incarnation.
/// Errors: invalid_config.
Result<net::Membership> make_membership(const WorkerOptions& options);
net::Meeting::Options meeting_options(const WorkerOptions& options);
transport::SessionOptions session_options(const WorkerOptions& options);

}  // namespace caftan::actors
