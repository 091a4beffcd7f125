/// All references of one worker: makes the actors of the values it owns and of the forks it uses, and the handles that
/// user code holds, and carries events to them. The decisions are in libs/rpc (CheckedManifest, ForkTable, UserFork,
/// CreationLedger).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/actors/rref_info.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/internal/permission_table.hpp"
#include "caftan/rpc/internal/rref_manifest.hpp"
#include "rref/ending_forks.hpp"
#include "rref/parked_forks.hpp"
#include "rref/rref_frames.hpp"
#include "rref/rref_messages.hpp"
#include "rref/rref_ports.hpp"
#include "rref/rref_table.hpp"
#include "service/member_ports.hpp"
#include "service/service.hpp"

namespace caftan::actors {

class RRefHost final : public Service,
                       public OwnerRRefPorts,
                       public UserRRefPorts,
                       public ForkRequestPorts,
                       public rpc::KnownRRefs {
 public:
  explicit RRefHost(MemberPorts& ports) : ports_(ports), ending_(ports) {}

  RRefTable& table() noexcept { return table_; }
  const RRefTable& table() const noexcept { return table_; }
  WorkerLife life() const { return ports_.life(); }
  EndingForks& ending() noexcept { return ending_; }
  const ParkedForks& parked() const noexcept { return parked_; }

  /// Refuses from now on what the table refuses, and calls of workers that hold no reference (PM-5).
  /// @param permissions  outlives this; called before the worker is launched
  void set_permissions(const rpc::PermissionTable& permissions) noexcept { permissions_ = &permissions; }

  // Service
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
  void on_session_start() override;
  void on_session_end(const transport::Session& session, bool is_last) override;
  void end_all(const Error& reason, StopReport& given_up) override;
  void when_empty(std::function<void()> done) override { table_.when_empty(std::move(done)); }
  std::size_t in_use() const override { return table_.owners() + table_.users(); }

  RRefId make_rref_id();

  // Making references.
  std::shared_ptr<rpc::RRefHandle> own(RRefId id, rpc::TypeKey type);
  /// The creator's own fork of a value at `session`'s worker.
  std::shared_ptr<rpc::RRefHandle> use_created(RRefId id, const std::shared_ptr<transport::Session>& session,
                                               const Peer& owner, rpc::TypeKey type, OutgoingRRefs& handed);
  /// @param fork  the creator's own; its handle may be gone already
  void creation_answered(ForkId fork, Result<void> reply);
  /// User code has dropped its last handle of the fork.
  void handle_let_go(ForkId fork);
  void set_value(RRefId id, Result<std::shared_ptr<rpc::HostedObject>> value);
  /// Links the owner's actor with the actor that is the value (L2): when either ends, the other one ends, too.
  void link_value(RRefId id, const caf::actor& actor);

  // Handing over.
  /// Registers a fork for each handle. Errors: what makes a handle unusable.
  Result<OutgoingRRefs> hand_over(const rpc::RRefHandles& handles, const std::shared_ptr<transport::Session>& to);

  // Receiving; in the order of the frames of a session.
  Result<std::shared_ptr<ReceivedRRefs>> on_manifest(transport::Session& session, wire::ByteView bytes);

  // Serving.
  /// Gives `job` to the actor of the value. Where this worker has no such value any more, runs `job` with rref_deleted.
  void with_value(RRefId id, std::shared_ptr<ValueJob> job);

  std::vector<RRefInfo> list() const;

  // KnownRRefs
  bool is_member(WorkerId worker) const override { return ports_.find_peer(worker).has_value(); }
  bool has_value(RRefId rref) const override { return table_.has_owner(rref); }
  bool has_fork(ForkId fork) const override { return table_.has_user(fork); }

  // ForkRequestPorts
  bool on_fork_requested(const ForkRequested& message, const rpc::PeerSession& asker,
                         const caf::strong_actor_ptr& child) override;
  void asker_gone(const ForkId& fork, const rpc::PeerSession& session) override { parked_.child_gone(fork, session); }

  // OwnerRRefPorts
  base::Executor& executor() override { return ports_.executor(); }
  caf::strong_actor_ptr fork_proxy(ForkId fork, const rpc::PeerSession& session) override;
  void answer_fork(ForkId fork, const rpc::PeerSession& session, Errc code) override;
  void fork_counted(RRefId id, ForkInfo fork) override { table_.fork_counted(id, fork); }
  void fork_ended(RRefId id, ForkId fork) override { table_.fork_ended(id, fork); }
  void value_known(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value) override {
    table_.value_known(id, value);
  }
  void owner_ending(RRefId id) override { table_.remove_owner(id); }
  std::optional<WorkerLife> guarded_by() const override {
    return permissions_ ? std::optional(ports_.life()) : std::nullopt;
  }
  std::optional<Error> leaving() const override { return ports_.leaving(); }

  // UserRRefPorts
  void user_confirmed(ForkId id, Result<void> outcome) override;
  void user_ending(ForkId id) override;
  bool start_is_over() const noexcept override { return ports_.start_is_over(); }
  std::optional<rpc::PeerSession> send_fork_request(const caf::strong_actor_ptr& child, const ForkRequested& request,
                                                    const WorkerLife& owner) override;

 private:
  ForkId make_fork_id();
  Result<void> hand_over_one(const std::shared_ptr<rpc::RRefHandle>& base,
                             const std::shared_ptr<transport::Session>& to, OutgoingRRefs& handed);
  void make_owner(RRefId id, OwnerEvent first, std::string type);
  void take_creation(transport::Session& session, const rpc::Creation& creation);
  std::shared_ptr<UserHandle> make_user(const rpc::SharedRRef& shared, const Peer& owner, rpc::UserFork fork,
                                        caf::strong_actor_ptr parent);
  std::shared_ptr<rpc::RRefHandle> receive(transport::Session& session,
                                           const rpc::CheckedManifest::Reference& reference);
  std::shared_ptr<rpc::RRefHandle> receive_own(transport::Session& session, const rpc::SharedRRef& shared,
                                               const Peer& owner);

  /// Whether that worker may refer to values here. Errors: not_permitted.
  Result<void> check_reference(WorkerId peer) const;

  MemberPorts& ports_;
  const rpc::PermissionTable* permissions_ = nullptr;
  EndingForks ending_;
  ParkedForks parked_;
  RRefTable table_;
  std::atomic<std::uint64_t> next_id_{1};
  base::Mutex mutex_;
  // How many creations were sent, by the connection number of the session.
  std::unordered_map<std::uint64_t, std::uint64_t> creations_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
