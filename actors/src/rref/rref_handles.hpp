/// The handles of the RRef<T>s of this worker: a user's fork, or a hold at the owner. Destructors post one local
/// message (RR-13).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/base/mutex.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/internal/rref_manifest.hpp"
#include "caftan/rpc/rref_handle.hpp"

namespace caftan::actors {

class RRefHost;

/// Why a value will never be there; set by its actor, once, read by the handles at the owner.
class ValueError {
 public:
  void set(Error error) {
    error_ = std::move(error);
    is_set_.store(true, std::memory_order_release);
  }
  std::optional<Error> get() const {
    if (!is_set_.load(std::memory_order_acquire)) return std::nullopt;
    return error_;
  }

 private:
  Error error_;
  std::atomic<bool> is_set_{false};
};

/// The common part: the ids, and the owner's confirmation.
class HandleBase : public rpc::RRefHandle, public std::enable_shared_from_this<HandleBase> {
 public:
  HandleBase(RRefHost& host, std::weak_ptr<rpc::Caller> caller, rpc::SharedRRef shared, Peer owner, bool confirmed);

  RRefId rref() const noexcept override { return shared_.rref; }
  const Peer& owner() const noexcept override { return owner_; }
  rpc::TypeKey type() const noexcept override { return {shared_.type_name, shared_.type_hash}; }
  bool confirmed_by_owner() const noexcept override;
  std::optional<Error> failed() const override { return refused(); }
  std::shared_ptr<rpc::Caller> caller() const noexcept override { return caller_.lock(); }

  const rpc::SharedRRef& shared() const noexcept { return shared_; }
  /// Confirms the handle or fails it; a confirmed handle may fail later. The first failure stays.
  void confirm(Result<void> outcome);
  /// Returns false if `waiter` was kept and will be called once; true if the handle is confirmed or has failed already.
  bool has_outcome_or(std::function<void()> waiter);
  /// Returns the error with which the handle has failed, if any.
  std::optional<Error> refused() const;

 protected:
  RRefHost& host_;  // valid while caller_ can be locked
  const std::weak_ptr<rpc::Caller> caller_;
  mutable base::Mutex mutex_;

 private:
  const rpc::SharedRRef shared_;
  const Peer owner_;
  bool has_outcome_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<Error> error_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> waiters_ CAFTAN_GUARDED_BY(mutex_);
};

class UserHandle final : public HandleBase {
 public:
  using HandleBase::HandleBase;
  ~UserHandle() override;
  ForkId fork() const noexcept override { return shared().fork; }
  bool is_owner() const noexcept override { return false; }
  Future<void> created() override;
  Future<std::shared_ptr<rpc::HostedObject>> local_value() override;

  void set_actor(caf::actor actor) { actor_ = std::move(actor); }
  const caf::actor& actor() const noexcept { return actor_; }
  /// Returns the session in which the owner counts this fork or was asked to; nothing before.
  std::optional<rpc::PeerSession> owner_session() const;
  void bind(const rpc::PeerSession& session);

 private:
  caf::actor actor_;
  std::optional<rpc::PeerSession> session_ CAFTAN_GUARDED_BY(mutex_);
};

class OwnerHandle final : public HandleBase {
 public:
  /// @param value_error  of the value; null if the value is gone
  OwnerHandle(RRefHost& host, std::weak_ptr<rpc::Caller> caller, rpc::SharedRRef shared, Peer owner, bool held,
              std::shared_ptr<const ValueError> value_error)
      : HandleBase(host, std::move(caller), std::move(shared), std::move(owner), held),
        value_error_(std::move(value_error)) {}
  ~OwnerHandle() override;
  ForkId fork() const noexcept override { return {}; }
  bool is_owner() const noexcept override { return true; }
  std::optional<Error> failed() const override;
  Future<void> created() override;
  Future<std::shared_ptr<rpc::HostedObject>> local_value() override;

 private:
  const std::shared_ptr<const ValueError> value_error_;
};

}  // namespace caftan::actors
