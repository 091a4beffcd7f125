/// All references of one worker: the actors of the values it owns and of the forks it uses, and the handles that user
/// code holds. The decisions are in libs/rpc (ForkTable, UserFork, CreationLedger); this is who finds whom.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor.hpp>

#include "caftan/actors/rref_info.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/creation_ledger.hpp"
#include "caftan/rpc/rref_handle.hpp"
#include "caftan/transport/session.hpp"
#include "rref_manifest.hpp"
#include "rref_messages.hpp"

namespace caf {
class event_based_actor;
}

namespace caftan::actors {

class RRefHost;
class UserHandle;
enum class FirstGone : std::uint8_t;
class OwnerHandle;
class ValueError;

/// The connection of a worker with itself has two ends here, each a session: their numbers differ in the lowest bit.
inline constexpr std::uint64_t kSelfServing = 2;
constexpr std::uint64_t other_end_of_self(std::uint64_t connection) noexcept { return connection ^ 1; }

/// What the host needs of its worker.
class RRefWorld {
 public:
  virtual ~RRefWorld() = default;
  virtual std::shared_ptr<rpc::Caller> shared_caller() = 0;
  virtual transport::ActorHost& actor_host() = 0;
  virtual Incarnation incarnation() const noexcept = 0;
  /// The session with that life of that worker, null if there is none now.
  virtual std::shared_ptr<transport::Session> session_with(WorkerId peer, Incarnation incarnation) = 0;
  virtual Result<Peer> peer_of(WorkerId id) = 0;
  /// Returns whether there was a session with every worker: then a worker without one is lost for good.
  virtual bool has_met_all() const noexcept = 0;
  /// Returns why this worker refuses what is asked of it, with its farewell as the cause; nothing before it leaves.
  virtual std::optional<Error> leaving() const = 0;
  /// The proxy of a fork's actor in that session; one that is down already if the session has ended.
  virtual caf::strong_actor_ptr fork_proxy(ForkId fork, const rpc::PeerSession& session) = 0;
};

/// The handles of one received frame, by manifest index, and what waits for their confirmation.
class ReceivedRRefs {
 public:
  /// @param caller  the worker of `host`, which lives as long
  ReceivedRRefs(RRefHost& host, std::weak_ptr<rpc::Caller> caller) : host_(host), caller_(std::move(caller)) {}
  /// A creation that nobody took, because its frame never came whole, fails: its owner's actor waits for nothing else.
  ~ReceivedRRefs();
  ReceivedRRefs(const ReceivedRRefs&) = delete;
  ReceivedRRefs& operator=(const ReceivedRRefs&) = delete;

  /// Returns the creation that the frame asks for, once: who takes it sets the value.
  std::optional<Creation> take_creation() { return std::exchange(creation, std::nullopt); }

  std::vector<std::shared_ptr<rpc::RRefHandle>> handles;
  std::optional<Creation> creation;

 private:
  RRefHost& host_;  // valid while caller_ can be locked
  const std::weak_ptr<rpc::Caller> caller_;
};

/// The forks that one outgoing frame hands over. Registered before the frame is offered to the lane (RR-4).
class Sharing {
 public:
  Sharing() = default;
  Sharing(Sharing&&) = default;
  Sharing& operator=(Sharing&&) = default;
  bool empty() const noexcept { return manifest_.shared.empty() && !manifest_.creation; }
  /// Returns the section's content.
  Result<wire::Bytes> encode() const;
  /// The lane did not accept the frame: nothing was registered.
  void undo();
  void set_creation(Creation creation) { manifest_.creation = creation; }

 private:
  friend class RRefHost;
  Manifest manifest_;
  std::vector<std::function<void()>> undo_;
};

class RRefHost {
 public:
  explicit RRefHost(RRefWorld& world) : world_(world) {}

  RRefWorld& world() noexcept { return world_; }
  RRefId make_rref_id();

  // Making references.
  std::shared_ptr<rpc::RRefHandle> own(RRefId id, rpc::TypeKey type);
  /// The creator's own fork of a value at `session`'s worker.
  std::shared_ptr<rpc::RRefHandle> use_created(RRefId id, const std::shared_ptr<transport::Session>& session,
                                               const Peer& owner, rpc::TypeKey type, Sharing& sharing);
  /// @param fork  the creator's own; its handle may be gone already
  void creation_answered(ForkId fork, Result<void> answer);
  void set_value(RRefId id, Result<std::shared_ptr<rpc::HostedObject>> value);
  /// Links the owner's actor with the one that is its value (L2): the end of either is that of both.
  void link_value(RRefId id, const caf::actor& actor);

  // Handing over.
  /// Registers a fork for each handle. Errors: what makes a handle unusable.
  Result<Sharing> share(const rpc::RRefHandles& handles, const std::shared_ptr<transport::Session>& to);

  // Receiving; in the order of the frames of a session.
  Result<std::shared_ptr<ReceivedRRefs>> on_manifest(transport::Session& session, wire::ByteView bytes);
  /// Calls `done` when user code may see all handles of a frame (RR-6), or with the reason why never; here if that is
  /// so already. @param deadline  of the call that carried them (RR-11)
  void when_confirmed(const std::shared_ptr<ReceivedRRefs>& received, TimePoint deadline,
                      std::function<void(Result<void>)> done);

  // Serving.
  /// Gives `job` to the value's actor, or runs it with rref_deleted.
  void with_value(RRefId id, std::shared_ptr<ValueJob> job);

  /// `world` returns the new session from `session_with` already.
  void on_session_start();
  void on_session_end(const transport::Session& session);
  /// Ends all references with shut_down; returns how many there were.
  std::size_t end_all(const Error& reason);
  /// Calls `done` when no actor of a reference is left; here if that is so already. An empty `done` gives the wait up.
  void when_empty(std::function<void()> done);
  /// Calls `done` when every fork that is left has a handle: those that were let go have ended. Here if that is so
  /// already; an empty `done` gives the wait up.
  void when_settled(std::function<void()> done);
  /// Waits, but not where no wait is permitted, while so many references of answered creations were let go and have not
  /// ended that memory fills up: ends are work for runners, creations may be quicker.
  /// Errors: timeout (`deadline` came first).
  Result<void> wait_for_ends(TimePoint deadline);

  std::size_t owners() const;
  std::size_t users() const;
  /// Returns how many fork requests wait for their creation.
  std::size_t parked() const;
  std::vector<RRefInfo> list() const;

  // For the handles.
  /// The last handle of a fork is gone. @param first  of that fork
  void handle_let_go(std::atomic<FirstGone>& first);

  // For the actors.
  /// @param child  the proxy of the actor that asks
  /// Returns whether the request is parked: then tell `asker_gone` when the child is no more.
  bool on_fork_requested(const ForkRequested& message, const rpc::PeerSession& asker,
                         const caf::strong_actor_ptr& child);
  /// The child gave up at its deadline or ended: nobody waits for an answer (RR-9).
  void asker_gone(const ForkId& fork, const rpc::PeerSession& asker);
  void answer_fork(ForkId fork, const rpc::PeerSession& session, Errc code);
  std::optional<rpc::PeerSession> send_fork_request(caf::event_based_actor& child, const ForkRequested& request,
                                                    const std::pair<WorkerId, Incarnation>& owner);
  void owner_ending(RRefId id);
  void owner_settled(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value);
  void fork_counted(RRefId id, ForkInfo fork);
  void fork_ended(RRefId id, ForkId fork);
  void user_ending(ForkId id);
  void user_confirmed(ForkId id, Result<void> outcome);
  caf::strong_actor_ptr fork_proxy(ForkId fork, const rpc::PeerSession& session);

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
  Result<void> share_one(const std::shared_ptr<rpc::RRefHandle>& base, const std::shared_ptr<transport::Session>& to,
                         Sharing& sharing);
  void make_owner(RRefId id, std::string type);
  /// Returns null if the value is gone.
  std::shared_ptr<const ValueError> value_error(RRefId id);
  bool tell_owner(RRefId id, OwnerEvent event);
  std::shared_ptr<UserHandle> make_user(const SharedRRef& shared, const Peer& owner, rpc::UserFork fork,
                                        caf::strong_actor_ptr parent, caf::actor& actor);
  Result<std::shared_ptr<rpc::RRefHandle>> receive(transport::Session& session, const SharedRRef& shared);
  void bind(ForkId fork, const rpc::PeerSession& session);
  void notify_if_empty();
  void notify_of_end();
  std::int64_t ending() const noexcept { return let_go_ - creating_; }
  caf::strong_actor_ptr take_parked(const ForkId& fork);

  RRefWorld& world_;
  std::atomic<std::uint64_t> next_id_{1};
  mutable std::mutex mutex_;
  std::unordered_map<RRefId, Owner> owners_;
  std::unordered_map<ForkId, User> users_;
  struct ParkedChild {
    rpc::PeerSession session;
    caf::strong_actor_ptr proxy;  // kept, or its down would find nobody
  };
  rpc::CreationLedger ledger_;
  std::unordered_map<ForkId, ParkedChild> parked_;              // the askers of what is parked in the ledger
  std::unordered_map<std::uint64_t, std::uint64_t> creations_;  // by connection of the session
  std::function<void()> empty_;
  std::function<void()> settled_;
  std::vector<Promise<void>> waiting_for_ends_;
  // Not guarded:
  std::atomic<std::int64_t> let_go_{0};    // forks without a handle, whose actors have not ended
  std::atomic<std::int64_t> creating_{0};  // creations that were sent and not answered: their forks cannot end
};

rpc::PeerSession peer_session(const transport::Session& session);

}  // namespace caftan::actors
