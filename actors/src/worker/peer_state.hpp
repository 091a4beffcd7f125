/// `PeerState`: one member of the job as callers see it, and the session that calls to it use.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "caftan/rpc/request.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::actors {

class PeerState final : public rpc::PeerRecord {
 public:
  PeerState(WorkerId id, std::string name) : id_(id), name_(std::move(name)) {}
  /// Precondition: `peer` came from a worker of this library.
  static const PeerState& of(const Peer& peer) noexcept { return static_cast<const PeerState&>(*peer.record()); }

  WorkerId id() const noexcept override { return id_; }
  const std::string& name() const noexcept override { return name_; }

  std::shared_ptr<transport::Session> session() const {
    const base::LockGuard lock(mutex_);
    return session_;
  }
  void set_session(std::shared_ptr<transport::Session> session) {
    const base::LockGuard lock(mutex_);
    session_ = std::move(session);
  }
  /// Puts `other` in the place of `ended`, unless the session of another life has taken it meanwhile.
  void replace_session(const transport::Session& ended, std::shared_ptr<transport::Session> other) {
    const base::LockGuard lock(mutex_);
    if (session_.get() == &ended) session_ = std::move(other);
  }
  /// Locked from the drawing of a creation number until the frame that has it is in the outbox: so frames leave in the
  /// order of their creation numbers (RR-9).
  base::Mutex& create_mutex() const noexcept { return create_mutex_; }

 private:
  const WorkerId id_;
  const std::string name_;
  mutable base::Mutex create_mutex_;
  mutable base::Mutex mutex_;
  std::shared_ptr<transport::Session> session_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
