/// The actors that crossed one session: the exports, which are local actors that the peer may reach, the proxies of the
/// peer's actors, and the monitors and links between them. Rules: docs/protocols/wire.md, "Actors".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>

#include "caftan/base/mutex.hpp"
#include "caftan/remote/internal/actor_host.hpp"
#include "caftan/remote/internal/address.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::remote {

class Proxy;
struct DownBody;
struct ExitBody;
struct MonitorBody;
struct RouteBody;

class ActorExchange final : public transport::ActorFrames {
 public:
  ActorExchange(transport::Session& session, ActorHost& host) : session_(session), host_(host) {}

  /// Makes the exchange of a session that has not started.
  static void attach(transport::Session& session, ActorHost& host) {
    session.set_actors(std::make_unique<ActorExchange>(session, host));
  }
  /// Returns the exchange of a session. Precondition: one was attached.
  static ActorExchange& of(transport::Session& session) noexcept {
    return static_cast<ActorExchange&>(session.actors());
  }

  ActorHost& host() noexcept { return host_; }
  transport::Session& session() noexcept { return session_; }

  /// Returns the proxy of the peer's actor at `address`. After the end of the session: a proxy that is down already,
  /// never null. The table is weak: a caller that monitors the actor has to keep the handle.
  caf::strong_actor_ptr proxy(const Address& address);

  /// Returns a proxy that is down already.
  static caf::strong_actor_ptr dead_proxy(ActorHost& host, const Error& reason);

  /// Returns the session of the proxy `actor`; null if `actor` is no proxy or its session is gone.
  static std::shared_ptr<transport::Session> session_of(const caf::strong_actor_ptr& actor);

  /// Sends a message of a registered type, not as a request, to the peer's actor behind the proxy `to`.
  /// @param may_wait  none: it leaves at once, for a sender whose task goes on for long
  /// Errors: limit_exceeded (naming the limit, of this side or the peer's), unsupported, peer_down; nothing was sent.
  static Result<void> send(const caf::strong_actor_ptr& to, const caf::strong_actor_ptr& from,
                           const caf::message& message,
                           std::optional<transport::FlushBy> may_wait = transport::FlushBy::queue_end);

  /// Makes `actor` reachable for the peer under `address`.
  void export_at(const Address& address, const caf::strong_actor_ptr& actor);
  /// As export_at, and announces the actor's end with a down frame.
  void export_watched(const Address& address, const caf::strong_actor_ptr& actor);

  /// Exports a local actor and returns its address. A proxy of this session returns the address of the peer's actor; a
  /// proxy of another session is exported like a local actor and forwards.
  Address export_actor(const caf::strong_actor_ptr& actor);

  /// Returns the handle for an address that the peer sent: a local actor if the address names an export of this side,
  /// else a proxy.
  caf::strong_actor_ptr resolve(const Address& address);

  /// Links two actors without a link frame, because the peer makes the same link itself (RR-4).
  static void link_silently(caf::abstract_actor& local, const caf::strong_actor_ptr& proxy);
  static void unlink_silently(caf::abstract_actor& local, const caf::strong_actor_ptr& proxy);

  /// Handles a frame to or about actors. Errors end the session.
  Result<void> on_frame(wire::InFrame frame) override;

  /// Ends every proxy, in slices; then calls `done`.
  void end(const Error& reason, std::function<void()> done) override;

  std::size_t proxies() const;
  std::size_t exports() const;

 private:
  friend class Proxy;
  friend class ReplyActor;

  void add_export(const Address& address, const caf::strong_actor_ptr& actor) CAFTAN_REQUIRES(mutex_);
  caf::strong_actor_ptr find_export(const Address& address);
  void on_export_exit(const Address& address, caf::actor_id id, const caf::error& reason);
  void forget(const Address& address);

  void take_down(const Address& address, const Error& reason);

  /// Decodes the body of a frame and calls its handler. Errors: malformed_payload, and what the handler refuses.
  template <class Body>
  Result<void> handle(const wire::InFrame& frame, Result<void> (ActorExchange::*handler)(const Body& body));
  Result<void> on_message(wire::InFrame& frame);
  Result<void> on_down(const DownBody& body);
  Result<void> on_exit(const ExitBody& body);
  Result<void> on_monitor(const MonitorBody& body);
  Result<void> on_demonitor(const MonitorBody& body);
  Result<void> on_link(const RouteBody& body);
  Result<void> on_unlink(const RouteBody& body);
  std::vector<caf::strong_actor_ptr> release_links_locked(const Address& to) CAFTAN_REQUIRES(mutex_);

  transport::Session& session_;
  ActorHost& host_;
  mutable base::Mutex mutex_;
  std::unordered_map<Address, caf::weak_actor_ptr> proxies_ CAFTAN_GUARDED_BY(mutex_);
  std::unordered_map<Address, caf::weak_actor_ptr> exports_ CAFTAN_GUARDED_BY(mutex_);
  std::unordered_map<caf::actor_id, Address> export_ids_ CAFTAN_GUARDED_BY(mutex_);
  // The exports with an ExportWatch, and whether the peer still monitors them.
  std::unordered_map<Address, bool> watched_exports_ CAFTAN_GUARDED_BY(mutex_);
  std::uint64_t next_export_ CAFTAN_GUARDED_BY(mutex_) = 1;
  // The proxies that links keep alive, by the local actor and the peer's actor.
  std::map<std::pair<Address, Address>, caf::strong_actor_ptr> links_ CAFTAN_GUARDED_BY(mutex_);
  bool ended_ CAFTAN_GUARDED_BY(mutex_) = false;
  Error reason_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::remote

/// An actor handle inside a registered message crosses as an address of the session.
template <>
struct caftan::wire::Codec<caf::actor> {
  static void save(OutArchive& to, const caf::actor& actor);
  static void load(InArchive& from, caf::actor& actor);
};
