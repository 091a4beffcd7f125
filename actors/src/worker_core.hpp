/// The inside of a Worker: its sessions with peers, the calls it makes and serves, its references. Implements what the
/// libraries ask of a worker (`rpc::Caller`) and what the transport asks (`FrameHandler`).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/base/repeated_lines.hpp"
#include "caftan/net/membership.hpp"
#include "caftan/net/refusal_log.hpp"
#include "caftan/rpc/call_hook.hpp"
#include "caftan/rpc/serve.hpp"
#include "caftan/tensor/codec.hpp"
#include "caftan/transport/actor_exchange.hpp"
#include "caftan/transport/endpoint.hpp"
#include "peer_state.hpp"
#include "rref_host.hpp"
#include "who_is_missing.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::View)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::Met)

namespace caftan::actors {

class AutogradHost;
class ServedCall;

class WorkerCore final : public rpc::Caller, public RRefWorld, private transport::FrameHandler {
 public:
  /// Precondition: options.executor is set; it outlives the core, which does not own it.
  static Result<std::shared_ptr<WorkerCore>> make(WorkerOptions options, Registry registry);
  ~WorkerCore() override;

  Result<void> launch();
  Result<void> wait_until_ready();
  /// Ends within stop_timeout and a second (architecture.md, "Life of a worker"). `end` also waits for code that runs.
  StopReport stop();
  void end();
  /// Precondition: not negative.
  void set_rpc_timeout(Duration timeout) noexcept { rpc_timeout_.store(timeout, std::memory_order_relaxed); }
  /// Waits until no call is under way and every reference that was let go has ended, at most until `deadline`.
  void settle(TimePoint deadline);
  void set_worker(Worker* worker) { worker_ = worker; }
  /// Says good-bye, with this reason, to the members that were not started by the same launcher; user code may still
  /// run.
  void leave_other_hosts(const Error& reason);
  /// From now on this worker takes on no call of its own, and a call that finds its object ended here fails with
  /// `leaving()`. stop() follows. Called at most once.
  /// @param farewell  the reason that the peers read; Errc::ok = it leaves in good order
  void begin_leaving(Error farewell);
  /// Names of those that the same launcher has started: it says itself when one of them does not come.
  void set_siblings(std::vector<std::string> names) { siblings_ = std::move(names); }

  const WorkerOptions& options() const noexcept { return options_; }
  std::string address() const;
  std::string channel_kind(const std::string& peer) const;
  WorkerCounters counters() const;
  std::vector<SentFrames> traffic() const;
  RRefHost& rref_host() noexcept { return rrefs_; }
  AutogradHost& autograd_host() noexcept { return *autograd_; }
  bool is_leaving() const noexcept { return life_ >= Life::leaving; }
  /// Returns whether nothing of the worker is left but this object; its executor may be gone, too.
  bool has_ended() const noexcept { return life_ == Life::ended; }
  void log(const std::string& line) const;

  // rpc::Caller
  WorkerId id() const noexcept override { return self_; }
  const std::string& name() const noexcept override { return options_.name; }
  const Registry& registry() const noexcept override { return registry_; }
  Executor& executor() noexcept override { return *options_.executor; }
  rpc::CallHook* hook() noexcept override { return hook_.get(); }
  Duration default_timeout() const noexcept override { return rpc_timeout_.load(std::memory_order_relaxed); }
  Worker& worker() noexcept override { return *worker_; }
  Result<Peer> find_peer(std::string_view name) override;
  Result<Peer> find_peer(WorkerId id) override;
  bool knows(const rpc::PeerRecord& peer) const noexcept override {
    return peer.id().value < peers_.size() && peers_[peer.id().value].get() == &peer;
  }
  rpc::CallToken submit(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options,
                        std::shared_ptr<rpc::ReplySink> sink) override;
  void cancel(const rpc::CallToken& token) noexcept override;
  Result<std::shared_ptr<rpc::RRefHandle>> create_remote(const Peer& peer, rpc::OutRequest&& request,
                                                         const CallOptions& options, rpc::TypeKey type) override;
  RRefId make_rref_id() override { return rrefs_.make_rref_id(); }
  Result<std::shared_ptr<rpc::RRefHandle>> create_local(std::shared_ptr<rpc::HostedObject> object) override;
  void on_unobserved_error(std::string_view what, const Error& error) noexcept override;

  // RRefWorld
  std::shared_ptr<rpc::Caller> shared_caller() override { return shared_from_this(); }
  std::shared_ptr<WorkerCore> shared_core() { return std::static_pointer_cast<WorkerCore>(shared_from_this()); }
  transport::ActorHost& actor_host() override { return *actor_host_; }
  Incarnation incarnation() const noexcept override { return incarnation_; }
  std::shared_ptr<transport::Session> session_with(WorkerId peer, Incarnation incarnation) override;
  Result<Peer> peer_of(WorkerId id) override { return find_peer(id); }
  bool has_met_all() const noexcept override { return life_ != Life::starting; }
  std::optional<Error> leaving() const override;
  caf::strong_actor_ptr fork_proxy(ForkId fork, const rpc::PeerSession& session) override;

  // Calls under way of this worker; stop() waits for them.
  void own_call_begins() noexcept { own_calls_.fetch_add(1); }
  void own_call_ends() {
    own_calls_.fetch_sub(1);
    notify_if_idle();
  }

  // For the frames of calls.
  rpc::Dispatcher& dispatcher() noexcept { return dispatcher_; }
  /// @param payload  empty
  Result<void> decode_payload(transport::InFrame& frame, rpc::InPayload& payload) const;
  /// Sends an answer. Errors: what cannot be encoded; nothing was sent then.
  Result<void> send_response(const std::shared_ptr<transport::Session>& session, std::uint64_t call,
                             Result<rpc::OutReply>&& reply);
  void served_call_ended(const ServedCall& call);
  /// A call ended after its time (CALL-18). @param waited  before it began  @param took  since then
  void on_late_answer(std::string_view function, WorkerId caller, Duration late, Duration waited, Duration took);

  /// In-process neighbours: one end of a loopback pair becomes a session.
  void add_local_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                         std::shared_ptr<transport::Channel> channel);
  transport::PeerIdentity identity() const { return {self_, options_.name, incarnation_, own_limits(), kFeatures}; }

 private:
  static constexpr std::uint64_t kFeatures =
      net::kSaysSegments | net::kKnowsErrorKinds | net::kKnowsGradMode | net::kKnowsDepth;
  class RootActor;
  WorkerCore(WorkerOptions options, Registry registry, WorkerId self, net::Membership membership);

  // FrameHandler
  Result<std::shared_ptr<void>> on_manifest(transport::Session& session, wire::FrameKind kind,
                                            wire::ByteView manifest) override;
  Result<void> on_frame(const std::shared_ptr<transport::Session>& session, transport::InFrame frame) override;
  void on_end(transport::Session& session, const Error& reason) override;

  /// Keeps the session: at the start the head's last words may not be read yet.
  struct LostPeer {
    std::shared_ptr<transport::Session> session;
    Error reason;
  };

  using SessionKey = std::tuple<WorkerId, Incarnation, std::uint64_t>;

  // Joining.
  Result<void> listen_at(const std::string& address);
  /// @param connection  0 for the side that was dialled
  net::HandshakeOptions handshake_options(std::uint64_t connection);
  Result<void> check_settings(const net::PeerInfo& peer);
  void refused(const Error& error);
  Error why_not_ready_locked() const;
  void log_refusal(const Error& error);
  Result<void> check_connection_locked(const SessionKey& key) const;
  /// Enters a session that is about to start, and counts it. Errors: why its peer may not have one.
  Result<void> keep_session(const std::shared_ptr<transport::Session>& session);
  bool may_dial_locked(const PeerState& peer) const;
  void dial_peer(WorkerId peer);
  void dial_failed(WorkerId peer, const Error& error);
  void greeted(transport::Greeted&& greeted);
  std::shared_ptr<transport::Session> add_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                                                  std::shared_ptr<transport::Channel> channel, wire::ByteView early,
                                                  bool primary);
  void on_member_up(WorkerId peer, Incarnation life, const std::string& address);
  void publish_view();
  void apply_view(const net::View& view);
  void check_met();
  void on_met(const std::shared_ptr<transport::Session>& session);
  void become_ready();
  Result<void> tell_root(transport::Session& peer, const caf::message& message);
  std::shared_ptr<transport::Session> other_session_with(const transport::Session& ended) const;
  void tell_lost(const transport::Session& session, const Error& reason);
  void fail_start(Error error);
  std::vector<MemberAtStart> members_at_start_locked() const;
  transport::SessionLimits session_limits() const;
  net::PeerLimits own_limits() const {
    return {options_.limits.message, options_.limits.tensor_bytes, options_.limits.window, options_.limits.tensors};
  }

  // Calls.
  /// What a request has taken before it is sent; send_request uses it or gives it back.
  struct Way {
    std::shared_ptr<transport::Session> session;
    std::uint64_t room;
    Sharing sharing;
  };
  Result<Way> open_way(const Peer& peer, const rpc::OutRequest& request, const CallOptions& options);
  Result<CallId> send_request(Way& way, rpc::OutRequest& request, std::shared_ptr<rpc::ReplySink> sink);
  /// @param features  of the session: a section is written only if the peer knows it
  Result<transport::OutFrame> encode_request(rpc::OutRequest& request, std::uint64_t features, Sharing& sharing,
                                             wire::Bytes& sections, tensor::EncodedTensors& tensors);
  /// Holds stop() up while a call is handed over.
  class OwnCall {
   public:
    explicit OwnCall(WorkerCore& core) : core_(core) { core_.own_call_begins(); }
    ~OwnCall() { core_.own_call_ends(); }
    OwnCall(const OwnCall&) = delete;
    OwnCall& operator=(const OwnCall&) = delete;

   private:
    WorkerCore& core_;
  };
  /// Writes `line`; of many with the same `more` only the first, then each second `more` with their count for its '#'.
  void log_repeated(const std::string& line, const std::string& more);
  void count_repeated_later(const std::string& more);
  void wait_until_idle(TimePoint deadline);
  void close_sessions(TimePoint deadline);
  // Both return whether it was over in time.
  bool wait_for_sessions(TimePoint until);
  bool end_rest(TimePoint until);
  std::size_t count_rest() const;
  void notify_if_idle();

  WorkerOptions options_;
  Registry registry_;
  std::atomic<Duration> rpc_timeout_;
  const WorkerId self_;
  const Incarnation incarnation_;
  Worker* worker_ = nullptr;
  transport::MessageRegistry messages_;
  std::unique_ptr<transport::ActorHost> actor_host_;
  RRefHost rrefs_;
  std::unique_ptr<AutogradHost> autograd_;
  std::unique_ptr<rpc::CallHook> hook_;
  rpc::Dispatcher dispatcher_;
  caf::actor root_;
  std::shared_ptr<transport::Listener> listener_;
  std::vector<std::shared_ptr<PeerState>> peers_;  // by id; constant after construction
  std::unordered_map<std::string, WorkerId> ids_;

  mutable std::mutex mutex_;
  net::Membership membership_;
  std::map<SessionKey, std::shared_ptr<transport::Session>> sessions_;
  net::Traffic ended_traffic_;  // of sessions that have ended
  std::uint64_t next_connection_ = kSelfServing + 2;
  std::string own_address_;  // where the listener is; empty before it listens
  std::optional<Error> start_error_;
  bool ready_ = false;
  bool has_met_all_ = false;  // once; the head: all have
  bool view_published_ = false;
  bool is_told_ = false;  // by the head, where everybody is
  std::map<WorkerId, LostPeer> lost_at_start_;
  Error last_dial_error_;
  Error last_refusal_;
  std::size_t refusals_ = 0;
  net::RefusalLog refusal_log_;
  std::optional<Error> other_settings_;  // a member that was refused for its settings
  Error farewell_;                       // constant once life_ is Life::leaving or later
  std::vector<std::string> siblings_;    // of the thread that waits until ready
  WaitPoint* ready_waiter_ = nullptr;
  WaitPoint* idle_waiter_ = nullptr;
  WaitPoint* sessions_waiter_ = nullptr;
  enum class Life { starting, serving, leaving, draining, ended };
  std::atomic<Life> life_{Life::starting};
  std::atomic<std::size_t> own_calls_{0};
  std::atomic<std::size_t> served_calls_{0};
  std::atomic<std::uint64_t> calls_served_{0};

  RepeatedLines repeated_;
  std::mutex served_mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<ServedCall>> cancellable_;  // by session connection and call
};

}  // namespace caftan::actors
