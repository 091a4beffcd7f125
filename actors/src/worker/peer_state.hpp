/// `PeerState`: what a worker knows of one member, and the session that calls to it use.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "caftan/net/dial_pause.hpp"
#include "caftan/net/membership.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/transport/endpoint.hpp"
#include "caftan/transport/session.hpp"

namespace caftan::actors {

/// A member as callers see it; holds the session with its present life.
class PeerState final : public rpc::PeerRecord {
 public:
  /// @param own  this worker's life, for the pauses between attempts to dial
  PeerState(WorkerId id, std::string name, const std::string& configured, Incarnation own)
      : id_(id),
        name_(std::move(name)),
        is_fixed_(transport::is_dialable(configured)),
        address(is_fixed_ ? configured : ""),
        dial_pause(own.value ^ mix64(id.value + 1)) {}
  WorkerId id() const noexcept override { return id_; }
  const std::string& name() const noexcept override { return name_; }
  std::shared_ptr<ReadableSource> source() const override { return session(); }

  std::shared_ptr<transport::Session> session() const {
    const std::lock_guard lock(mutex_);
    return session_;
  }
  void set_session(std::shared_ptr<transport::Session> session) {
    const std::lock_guard lock(mutex_);
    session_ = std::move(session);
  }
  /// Puts `other` in the place of `ended`, unless the session of another life has taken it meanwhile.
  void replace_session(const transport::Session& ended, std::shared_ptr<transport::Session> other) {
    const std::lock_guard lock(mutex_);
    if (session_.get() == &ended) session_ = std::move(other);
  }
  /// Takes what the head says of its present life. Caller holds WorkerCore::mutex_.
  void announce(const net::Join& life) {
    learn_address(life.address);
    if (std::exchange(announced, life.incarnation) != life.incarnation) dial_pause.reset();
  }
  /// Takes where its present life listens, unless that stands in the world. Caller holds WorkerCore::mutex_.
  void learn_address(const std::string& listens_at) {
    if (is_fixed_ || listens_at.empty() || listens_at == address) return;
    address = listens_at;
    dial_pause.reset();
  }

 private:
  const WorkerId id_;
  const std::string name_;
  const bool is_fixed_;
  mutable std::mutex mutex_;
  std::shared_ptr<transport::Session> session_;

 public:
  std::mutex create_mutex;    // creation numbers are drawn in the order in which the lane accepts the frames (RR-9)
  std::string address;        // empty: not known yet; guarded by WorkerCore::mutex_
  net::DialPause dial_pause;  // guarded by WorkerCore::mutex_
  Error duplicate;            // of the last attempt to dial it; Errc::ok: it said none; guarded by WorkerCore::mutex_
  bool dialling = false;      // or waiting to dial again; guarded by WorkerCore::mutex_
  Incarnation met;            // its latest life that has been up; zero: none; guarded by WorkerCore::mutex_
  Incarnation announced;      // its present life as the head says; zero: not yet; guarded by WorkerCore::mutex_
  bool has_met_all = false;   // says its present life, to the head; guarded by WorkerCore::mutex_
};

}  // namespace caftan::actors
