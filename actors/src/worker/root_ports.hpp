/// What the root actor of a worker passes on: of how members come together to `RootPorts`, which `Joiner` implements,
/// and of how they leave to `LeavePorts`, which `Leaver` implements.
#pragma once

#include <memory>

#include <caf/message.hpp>

#include "caftan/net/internal/leave_together.hpp"
#include "caftan/net/internal/membership.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::actors {

/// Threads: the root actor's.
class RootPorts {
 public:
  virtual ~RootPorts() = default;
  /// The coordinator has sent the addresses of all members.
  virtual void on_view(const transport::Session& from, const net::View& view) = 0;
  /// A member has reported that it is ready, or the coordinator that all are.
  virtual void on_met(transport::Session& from) = 0;
};

/// A message of this worker to itself: `session`, the last with that life of a peer, has ended. The message comes
/// behind all messages that were read from the session, and keeps the session so that their handlers find it. No new
/// life of the peer is admitted before this message is in the mailbox.
struct PeerLost {
  std::shared_ptr<transport::Session> session;
  Error reason;
};

/// Sends a message of this worker's root actor to that of a peer. Threads: any.
class RootSender {
 public:
  virtual ~RootSender() = default;
  virtual Result<void> send_to_root(transport::Session& peer, const caf::message& message) = 0;
};

/// Threads: the root actor's.
class LeavePorts {
 public:
  virtual ~LeavePorts() = default;
  /// A member waits in leave_together.
  virtual void on_report(const transport::Session& from, const net::LeaveReport& report) = 0;
  /// The run() of that member's role has returned.
  virtual void on_returned(const transport::Session& from) = 0;
  virtual void on_lost(const PeerLost& lost) = 0;
};

}  // namespace caftan::actors
