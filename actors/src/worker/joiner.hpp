/// `Joiner`: brings this worker together with the others: it listens, dials, shakes hands, adds sessions, and exchanges
/// what ends the start. `net::Meeting` decides; this carries it out. Rules: docs/protocols/session.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor.hpp>
#include <caf/message.hpp>

#include "caftan/actors/worker.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/net/internal/meeting.hpp"
#include "caftan/transport/internal/endpoint.hpp"
#include "service/member_ports.hpp"
#include "service/service.hpp"
#include "worker/leaver.hpp"
#include "worker/peers.hpp"
#include "worker/root_ports.hpp"
#include "worker/worker_log.hpp"

namespace caftan::actors {

/// Threads: any, unless a method names one.
class Joiner final : public RootPorts, private RootSender {
 public:
  struct Parts {
    MemberPorts& ports;
    const WorkerOptions& options;
    Peers& peers;
    transport::FrameHandler& frames;
    std::span<Service* const> services;
    WorkerLog& log;
    WorkPorts& work;
  };
  Joiner(const Parts& parts, net::Membership membership);

  /// Begins to connect with the others. @param root  the actor that peers address first, a RootActor
  /// Errors: invalid_config, io_error.
  Result<void> launch(caf::actor root);
  /// As Worker::wait_until_ready.
  Result<void> wait_until_ready();
  /// Names of the workers that the same launcher has started. Called before wait_until_ready, by its thread.
  void set_siblings(std::vector<std::string> names) { siblings_ = std::move(names); }
  bool start_is_over() const;
  /// Returns the address at which this worker listens; empty if it does not.
  std::string address() const;
  /// Returns why calls to a member without a session fail.
  Error why_unreachable(WorkerId peer) const;

  // ---- leaving
  Leaver& leaver() noexcept { return leaver_; }
  /// From now on no session is added and no peer is dialled.
  void leave();
  void stop_listening();
  /// Says good-bye, with this reason, to the members that were not started by the same launcher.
  /// Threads: the one that sets siblings.
  void leave_other_hosts(const Error& reason);
  /// Ends the root actor. Precondition: no session is left.
  void close();

  // ---- sessions

  /// Returns this worker as in-process neighbours see it.
  transport::PeerIdentity identity() const;
  /// Adds a session over one end of a loopback pair.
  void add_local_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                         std::shared_ptr<transport::Channel> channel);
  /// Reports to the meeting that a session has ended. `follow_up` has to be called once the session is out of use.
  net::Meeting::Loss on_session_end(transport::Session& session, const Error& reason);
  void follow_up(const transport::Session& session, const Error& reason, const net::Meeting::Loss& loss);

  // RootPorts
  void on_view(const transport::Session& from, const net::View& view) override;
  void on_met(transport::Session& from) override;

 private:
  /// A peer that was lost during the start. The session is kept, because the last message of the coordinator may not
  /// have been read from it yet.
  struct LostPeer {
    std::shared_ptr<transport::Session> session;
    Error reason;
  };
  // Whether this worker's calls use this end of a session, or only serve the peer's.
  enum class Use : std::uint8_t { calls, serving };

  std::shared_ptr<Joiner> self() { return {parts_.ports.shared_from_this(), this}; }
  base::TimePoint now() const noexcept { return parts_.options.executor->clock().now(); }

  Result<void> meet_neighbours();
  Result<void> listen_at(const std::string& address);
  transport::HandshakeIoOptions handshake_io();
  /// @param connection  number of the session to be; 0 for the side that was dialled
  net::HandshakeOptions handshake_options(std::uint64_t connection);
  Result<void> accept(const net::PeerInfo& peer, bool is_dialled);
  void refused(const Error& error);
  void dial(WorkerId peer);
  void dial_failed(WorkerId peer, const Error& error);
  void on_accepted(transport::Accepted&& accepted);
  void write_note(const std::string& peer, const std::string& note);
  std::shared_ptr<transport::Session> add_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                                                  std::shared_ptr<transport::Channel> channel, wire::ByteView early,
                                                  Use use);
  Result<void> keep(const std::shared_ptr<transport::Session>& session);
  void on_connected(const WorkerLife& peer, const std::string& address);
  void announce_session();

  void publish_view();
  void report_if_ready();
  void end_start();
  void fail_start(Error error);
  void notify_if_decided() CAFTAN_REQUIRES(mutex_);
  Result<void> send_to_root(transport::Session& peer, const caf::message& message) override;
  void report_lost(const transport::Session& session, const Error& reason);

  const Parts parts_;
  Leaver leaver_;
  caf::actor root_;                                // constant from launch to close
  std::shared_ptr<transport::Listener> listener_;  // likewise
  std::vector<std::string> siblings_;

  mutable base::Mutex mutex_;
  net::Meeting meeting_ CAFTAN_GUARDED_BY(mutex_);
  std::map<WorkerId, LostPeer> lost_at_start_ CAFTAN_GUARDED_BY(mutex_);
  std::uint64_t next_connection_ CAFTAN_GUARDED_BY(mutex_) = kSelfServing + 2;
  std::string address_ CAFTAN_GUARDED_BY(mutex_);  // empty before it listens
  base::WaitPoint* ready_waiter_ CAFTAN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace caftan::actors
