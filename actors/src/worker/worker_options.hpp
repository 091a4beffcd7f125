/// What WorkerOptions mean for the parts of a worker.
#pragma once

#include <cstdint>
#include <string>

#include "caftan/actors/worker.hpp"
#include "caftan/net/internal/handshake.hpp"
#include "caftan/net/internal/meeting.hpp"
#include "caftan/transport/internal/endpoint.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::actors {

/// Checks the options and returns the job as this worker knows it before it starts, with a new random incarnation.
/// Errors: invalid_config.
Result<net::Membership> make_membership(const WorkerOptions& options);
net::Meeting::Options meeting_options(const WorkerOptions& options);
transport::SessionOptions session_options(const WorkerOptions& options);
transport::HandshakeIoOptions io_options(const WorkerOptions& options);
/// Returns whether connections over TCP are encrypted.
bool uses_tls(const WorkerOptions& options);
/// Checks the certificate of a peer that has shown one (TS-4). Errors: not_authenticated.
Result<void> check_certificate(const WorkerOptions& options, const net::PeerInfo& peer);
/// Returns the worker as neighbours in its process see it. @param self  its life
transport::PeerIdentity make_identity(const WorkerOptions& options, const WorkerLife& self);
/// Returns what the worker says in a handshake; it accepts every member of the cluster.
/// @param connection  0 for the side that was dialled
/// @param address     where the worker listens; empty = it does not
net::HandshakeOptions make_handshake_options(const WorkerOptions& options, const WorkerLife& self,
                                             std::uint64_t connection, std::string address);

}  // namespace caftan::actors
