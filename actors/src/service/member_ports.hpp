/// `MemberPorts`: all that a service of a worker (references, autograd contexts, optimizers, modules) uses of that
/// worker. A service includes nothing else of the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/internal/fork_table.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::remote {
class ActorHost;
}

namespace caftan::actors {

/// The connection of a worker with itself has two ends, each a session of its own: the numbers of the two sessions
/// differ in the lowest bit.
inline constexpr std::uint64_t kSelfServing = 2;
constexpr std::uint64_t other_end_of_self(std::uint64_t connection) noexcept { return connection ^ 1; }

/// Returns the key by which `MemberPorts::session_at` finds this session.
inline rpc::PeerSession peer_session(const transport::Session& session) {
  return {session.peer().life, session.connection()};
}

/// Threads: any, all methods.
class MemberPorts : public rpc::Caller {
 public:
  /// Returns the ports of a worker. For registered functions, which get a Worker&.
  static MemberPorts& of(Worker& worker) noexcept;

  virtual remote::ActorHost& actor_host() = 0;
  virtual WorkerLife life() const noexcept = 0;
  /// Returns the session that calls to that life of that worker use, null if there is none now.
  virtual std::shared_ptr<transport::Session> session_with(const WorkerLife& peer) = 0;
  /// Returns the session that calls to `peer` use, null if there is none now. Precondition: find_peer returned `peer`.
  virtual std::shared_ptr<transport::Session> session_of(const Peer& peer) = 0;
  /// Returns exactly that session, null if it has ended.
  virtual std::shared_ptr<transport::Session> session_at(const rpc::PeerSession& session) = 0;
  /// Returns whether the start has ended (SE-27). From then on a worker without a session is lost for good.
  virtual bool start_is_over() const noexcept = 0;
  /// Returns why a worker that has begun to leave takes on nothing new and ends what it has: shut_down, with the
  /// worker's farewell as the cause. Returns nothing before the worker leaves.
  virtual std::optional<Error> leaving() const = 0;
  /// Returns whether nothing of the worker is left but the memory of this object; its executor may be gone, too.
  virtual bool has_ended() const noexcept = 0;
  virtual void log(const std::string& line) const = 0;
};

}  // namespace caftan::actors
