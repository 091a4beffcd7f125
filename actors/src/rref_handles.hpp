/// What stands behind every RRef<T> of this worker: a user's fork or a hold at the owner. Destructors post one local
/// message (RR-13).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/rref_handle.hpp"
#include "rref_manifest.hpp"

namespace caftan::actors {

class RRefHost;

/// Common part: who, and whether user code may see it yet.
class HandleBase : public rpc::RRefHandle {
 public:
  HandleBase(RRefHost& host, std::weak_ptr<rpc::Caller> caller, SharedRRef shared, Peer owner, bool confirmed);

  RRefId rref() const noexcept override { return shared_.rref; }
  const Peer& owner() const noexcept override { return owner_; }
  rpc::TypeKey type() const noexcept override { return {shared_.type_name, shared_.type_hash}; }
  bool confirmed_by_owner() const noexcept override;
  std::optional<Error> failed() const override;
  std::shared_ptr<rpc::Caller> caller() const noexcept override { return caller_.lock(); }

  const SharedRRef& shared() const noexcept { return shared_; }
  /// Settles confirmation, or makes a confirmed handle fail later. The first failure stays.
  void settle(Result<void> outcome);
  /// Returns false if `waiter` was kept and will be called once; true if it is settled already.
  bool settled_or(std::function<void()> waiter);

 protected:
  RRefHost& host_;  // valid while caller_ can be locked
  const std::weak_ptr<rpc::Caller> caller_;

 private:
  const SharedRRef shared_;
  const Peer owner_;
  mutable std::mutex mutex_;
  bool settled_;
  std::optional<Error> error_;
  std::vector<std::function<void()>> waiters_;
};

class UserHandle final : public HandleBase {
 public:
  using HandleBase::HandleBase;
  ~UserHandle() override;
  ForkId fork() const noexcept override { return shared().fork; }
  bool is_owner() const noexcept override { return false; }
  Future<std::shared_ptr<rpc::HostedObject>> local_value() override;

  void set_actor(caf::actor actor) { actor_ = std::move(actor); }
  const caf::actor& actor() const noexcept { return actor_; }
  /// The session in which the owner counts this fork, once it was asked for there.
  std::optional<rpc::PeerSession> owner_session() const;
  void bind(const rpc::PeerSession& session);

 private:
  caf::actor actor_;
  mutable std::mutex session_mutex_;
  std::optional<rpc::PeerSession> session_;
};

class OwnerHandle final : public HandleBase {
 public:
  using HandleBase::HandleBase;
  ~OwnerHandle() override;
  ForkId fork() const noexcept override { return {}; }
  bool is_owner() const noexcept override { return true; }
  Future<std::shared_ptr<rpc::HostedObject>> local_value() override;
};

}  // namespace caftan::actors
