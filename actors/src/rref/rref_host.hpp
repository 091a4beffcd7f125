/// All references of one worker: the actors of the values it owns and of the forks it uses, and the handles that user
/// code holds. The decisions are in libs/rpc (ForkTable, UserFork, CreationLedger); this class finds the actors.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/actors/rref_info.hpp"
#include "caftan/base/mutex.hpp"
#include "rref/ending_forks.hpp"
#include "rref/parked_forks.hpp"
#include "rref/rref_frames.hpp"
#include "rref/rref_messages.hpp"
#include "rref/rref_ports.hpp"
#include "service/member_ports.hpp"
#include "service/service.hpp"

namespace caftan::actors {

class UserHandle;
class OwnerHandle;
class ValueError;

class RRefHost final : public Service, public OwnerRRefPorts, public UserRRefPorts, public ForkRequestPorts {
 public:
  explicit RRefHost(MemberPorts& ports) : ports_(ports), ending_(ports) {}

  EndingForks& ending() noexcept { return ending_; }
  const ParkedForks& parked() const noexcept { return parked_; }

  // Service
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
  void on_session_start() override;
  void on_session_end(const transport::Session& session, bool is_last) override;
  void end_all(const Error& reason, StopReport& given_up) override;
  void when_empty(std::function<void()> done) override;
  std::size_t in_use() const override { return owners() + users(); }

  RRefId make_rref_id();

  // Making references.
  std::shared_ptr<rpc::RRefHandle> own(RRefId id, rpc::TypeKey type);
  /// The creator's own fork of a value at `session`'s worker.
  std::shared_ptr<rpc::RRefHandle> use_created(RRefId id, const std::shared_ptr<transport::Session>& session,
                                               const Peer& owner, rpc::TypeKey type, OutgoingRRefs& handed);
  /// @param fork  the creator's own; its handle may be gone already
  void creation_answered(ForkId fork, Result<void> answer);
  void set_value(RRefId id, Result<std::shared_ptr<rpc::HostedObject>> value);
  /// Links the owner's actor with the one that is its value (L2): the end of either is that of both.
  void link_value(RRefId id, const caf::actor& actor);

  // Handing over.
  /// Registers a fork for each handle. Errors: what makes a handle unusable.
  Result<OutgoingRRefs> hand_over(const rpc::RRefHandles& handles, const std::shared_ptr<transport::Session>& to);

  // Receiving; in the order of the frames of a session.
  Result<std::shared_ptr<ReceivedRRefs>> on_manifest(transport::Session& session, wire::ByteView bytes);

  // Serving.
  /// Gives `job` to the actor of the value. Where this worker has no such value any more, runs `job` with rref_deleted.
  void with_value(RRefId id, std::shared_ptr<ValueJob> job);

  std::size_t owners() const {
    const LockGuard lock(mutex_);
    return owners_.size();
  }
  std::size_t users() const {
    const LockGuard lock(mutex_);
    return users_.size();
  }
  std::vector<RRefInfo> list() const;

  // ForkRequestPorts
  bool on_fork_requested(const ForkRequested& message, const rpc::PeerSession& asker,
                         const caf::strong_actor_ptr& child) override;
  void asker_gone(const ForkId& fork, const rpc::PeerSession& session) override { parked_.child_gone(fork, session); }

  // OwnerRRefPorts
  Executor& executor() override { return ports_.executor(); }
  caf::strong_actor_ptr fork_proxy(ForkId fork, const rpc::PeerSession& session) override;
  void answer_fork(ForkId fork, const rpc::PeerSession& session, Errc code) override;
  void fork_counted(RRefId id, ForkInfo fork) override;
  void fork_ended(RRefId id, ForkId fork) override;
  void value_known(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value) override;
  void owner_ending(RRefId id) override;
  std::optional<Error> leaving() const override { return ports_.leaving(); }

  // UserRRefPorts
  void user_confirmed(ForkId id, Result<void> outcome) override;
  void user_ending(ForkId id) override;
  bool start_is_over() const noexcept override { return ports_.start_is_over(); }
  std::optional<rpc::PeerSession> send_fork_request(const caf::strong_actor_ptr& child, const ForkRequested& request,
                                                    const WorkerLife& owner) override;

 private:
  friend class UserHandle;
  friend class OwnerHandle;
  struct Owner {
    caf::actor actor;
    std::string type;
    std::string state = "pending";
    std::shared_ptr<ValueError> error;  // made for the first handle here, or when the value failed
    TimePoint born;
    std::unordered_map<ForkId, ForkInfo> forks;
  };
  struct User {
    caf::actor actor;
    std::weak_ptr<UserHandle> handle;
    std::shared_ptr<std::atomic<FirstGone>> first_gone;  // shared with the handle
    RRefId rref;
    TimePoint born;
    bool is_creators = false;
  };

  ForkId make_fork_id();
  Result<void> hand_over_one(const std::shared_ptr<rpc::RRefHandle>& base,
                             const std::shared_ptr<transport::Session>& to, OutgoingRRefs& handed);
  void make_owner(RRefId id, std::string type);
  /// Returns null if the value is gone.
  std::shared_ptr<const ValueError> value_error(RRefId id);
  bool tell_owner(RRefId id, OwnerEvent event);
  std::shared_ptr<UserHandle> make_user(const SharedRRef& shared, const Peer& owner, rpc::UserFork fork,
                                        caf::strong_actor_ptr parent, caf::actor& actor);
  Result<std::shared_ptr<rpc::RRefHandle>> receive(transport::Session& session, const SharedRRef& shared);
  void bind(ForkId fork, const rpc::PeerSession& session);
  void notify_if_empty();

  MemberPorts& ports_;
  EndingForks ending_;
  ParkedForks parked_;
  std::atomic<std::uint64_t> next_id_{1};
  mutable Mutex mutex_;
  std::unordered_map<RRefId, Owner> owners_ CAFTAN_GUARDED_BY(mutex_);
  std::unordered_map<ForkId, User> users_ CAFTAN_GUARDED_BY(mutex_);
  // How many creations were sent, by connection of the session.
  std::unordered_map<std::uint64_t, std::uint64_t> creations_ CAFTAN_GUARDED_BY(mutex_);
  std::function<void()> empty_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
