/// `Worker`: one member of a job. It is the composition root: registry, executor, sessions, actors and references of
/// one member come together here, and one process can hold many. Its typed calls are those of `CallSite`. Start with
/// `Worker::start`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/actors/rref_info.hpp"
#include "caftan/autograd/context_info.hpp"
#include "caftan/base/result.hpp"
#include "caftan/net/limits.hpp"
#include "caftan/rpc/call_site.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/wire/sent_frames.hpp"

namespace caftan {

namespace rpc {
class CallHook;
}
namespace transport {
class Channel;
class PollingExecutor;
}  // namespace transport
namespace actors {
class Joiner;
class RoleHost;
class WorkerCore;
}  // namespace actors

/// Connects the Workers of one process without sockets, through the same session code. Workers that share one find each
/// other; the application's placement "one_process" and the cluster tests use it. Threads: any.
class LocalNetwork {
 public:
  /// The two ends of one connection, the first for the member named first.
  using Connection = std::pair<std::shared_ptr<transport::Channel>, std::shared_ptr<transport::Channel>>;
  /// Makes the connection between two members, by their names.
  using Connect = std::function<Connection(transport::PollingExecutor&, const std::string&, const std::string&)>;

  LocalNetwork();
  /// @param connect  makes the channels between two members instead of plain loopback ones, for simulations of slow,
  ///   lossy or hostile connections. Threads: those that start workers.
  explicit LocalNetwork(Connect connect);
  ~LocalNetwork();
  LocalNetwork(const LocalNetwork&) = delete;
  LocalNetwork& operator=(const LocalNetwork&) = delete;

 private:
  friend class actors::Joiner;
  struct State;
  std::unique_ptr<State> state_;
};

/// One member of the job as every member knows it from the start.
struct WorkerAddress {
  std::string name;
  std::string address;  ///< "shm:/path", "unix:/path", "tcp:host:port"; empty or port 0: learnt from the coordinator,
                        ///< or a LocalNetwork
};

/// How connections over TCP are encrypted: docs/protocols/tls.md.
struct TlsOptions {
  /// `automatic`: if the first member's address can be reached from other hosts, or with a certificate.
  enum class Mode : std::uint8_t { automatic, on, off };
  Mode mode = Mode::automatic;  ///< the same at all members
  // PEM files; all three or none. They are read for each connection. None: the key is made of `secret`.
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path authority;
  /// By worker: names that its certificate may have instead of its own, those of its host.
  std::map<std::string, std::vector<std::string>> also_named;
};

/// What a worker is and how it finds the others.
struct WorkerOptions {
  std::string name;                  ///< name of this member; must be in `world`
  std::vector<WorkerAddress> world;  ///< all members in order of their ids; the same at every member
  std::string cluster = "caftan";    ///< members of another cluster are refused
  std::string secret;  ///< shared by all members; may be empty only where nothing listens beyond this host's user
  TlsOptions tls;
  /// What members must have in common: words "part=digest", at most 255 bytes. When two members connect that both have
  /// such words, the dialled one compares them, and refuses the connection with invalid_config if they differ. Empty:
  /// not compared.
  std::string settings;
  net::Limits limits;
  base::Duration rpc_timeout = std::chrono::seconds(60);    ///< time-out of calls that name none; 0 = none
  base::Duration start_timeout = std::chrono::seconds(10);  ///< for all members to come
  base::Duration stop_timeout = std::chrono::seconds(2);    ///< how long `stop` waits for calls and references to end
  base::Duration heartbeat = std::chrono::seconds(1);       ///< silence after which a sign of life is sent
  base::Duration peer_timeout =
      std::chrono::seconds(10);  ///< silence after which a peer is lost; at least 2 heartbeats

  /// Shared by the Workers of a process; null = this worker makes its own.
  std::shared_ptr<transport::PollingExecutor> executor;
  std::shared_ptr<LocalNetwork> network;   ///< for members in this process
  std::shared_ptr<rpc::CallHook> hook;     ///< sees every call; null = none
  std::shared_ptr<actors::RoleHost> role;  ///< the role that this worker plays; null = none
  /// Receives each line for the log. Threads: any. Default: nothing is logged.
  std::function<void(std::string_view line)> log;
  /// Called once for each peer that is lost while this worker serves: with peer_down, or, if the peer left, with its
  /// farewell or shut_down. Threads: a runner.
  std::function<void(const std::string& peer, const Error& reason)> on_peer_down;
  /// Called when a driving worker of another launcher has returned from run(): docs/protocols/run.md, RN-21.
  /// Threads: a runner.
  std::function<void(const std::string& peer)> on_peer_returned;
  /// Called for each refused connection that may be a member's, at most 8 times, while this worker waits for the
  /// others. Threads: a runner.
  std::function<void(const Error& reason)> on_refused;
  /// Called when a member refuses this worker because another worker of the same name is connected: duplicate_worker,
  /// with the place of the other worker. This happens during the start, and after it when this worker dials the new
  /// life of a member; this worker dials again until start_timeout has passed. Threads: a runner.
  std::function<void(const Error& reason)> on_duplicate;
};

/// What a worker counts, for metrics and tests.
struct WorkerCounters {
  std::uint64_t frames_out = 0, frames_in = 0, bytes_out = 0, bytes_in = 0;
  std::uint64_t requests_in_flight = 0;
  std::uint64_t calls_served = 0;
  std::uint64_t tells_lost = 0;  ///< one-way calls of this worker that had not ended when their callee was lost
  std::size_t owner_rrefs = 0, user_rrefs = 0;
};

/// What a worker gave up when it stopped.
struct StopReport {
  std::size_t calls = 0;         ///< calls of this worker without a reply after stop_timeout
  std::size_t served_calls = 0;  ///< calls of peers that were not answered after stop_timeout
  std::size_t references = 0;    ///< values that it owned, and references to values of others, that had not ended
  std::size_t contexts = 0;      ///< autograd contexts that were open here
  /// Connections, references, contexts, backward passes and actors that waited for code on a runner when `stop`
  /// returned, a second after stop_timeout; the Worker's destructor waits for that code.
  std::size_t in_use = 0;
};

/// One member of a job. Threads: any for all methods whose comment names none.
class Worker : public CallSite {
 public:
  /// Starts a member and waits until all members are connected with each other, so that each can call each.
  /// @param registry  what peers may call; the worker freezes its copy, so it does not have what is registered later
  /// Errors: invalid_config (the list of members, an address, a name, the registry), io_error (the address is in use),
  ///   timeout (naming the members that are missing, or not connected with all), not_authenticated, protocol_mismatch,
  ///   wrong_cluster, unknown_worker (another worker answers at a member's address), duplicate_worker (another worker
  ///   of this name was connected until the time-out).
  /// Threads: not a runner's. Blocks.
  static Result<std::unique_ptr<Worker>> start(WorkerOptions options, Registry registry);
  /// As start, but does not wait for the other members: call `wait_until_ready` for that. For several members in one
  /// thread.
  static Result<std::unique_ptr<Worker>> launch(WorkerOptions options, Registry registry);
  /// Errors: as start.
  Result<void> wait_until_ready();

  /// Stops, and then waits without bound for what StopReport::in_use counts: it blocks for ever on a graph
  /// node that never returns. It does not wait for a function or method that still runs on a runner and keeps none of
  /// these: such code must not use its `Worker&` or this worker's references any more. Not on a runner.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Waits until all members of the job have called this and none of them has work under way: no call of its own or of
  /// a peer, no released reference that has not ended. Then every member may stop: no other needs it. For Workers that
  /// no launcher runs; it stops nothing.
  /// @param timeout  of this call; 0 = none
  /// Errors: timeout (naming the members that have not come, have not called it, or have work under way), peer_down (a
  ///   member is lost or has left before: naming it), shut_down, overloaded (a second call at the same time),
  ///   would_deadlock (in a function, method or continuation), bad_arguments (a negative timeout). After an error it
  ///   may be called again, and `stop` leaves without the others.
  /// Threads: any of the user's. Blocks. Source: torch.distributed.rpc.shutdown(graceful=True). Difference: it does not
  ///   stop the worker.
  Result<void> leave_together(base::Duration timeout = std::chrono::seconds(60));

  /// Leaves the job: refuses new calls, lets own and served ones end, ends all references, says bye to every peer.
  /// What is not over within stop_timeout fails with shut_down. Safe to repeat. Blocks for stop_timeout and a second at
  /// most, whatever code still runs. The first call returns what it gave up.
  StopReport stop();

  /// Changes the time-out of later calls that name none, which WorkerOptions::rpc_timeout has set; 0 = none.
  /// Errors: bad_arguments (negative). Threads: any. Source: torch.distributed.rpc._set_rpc_timeout.
  Result<void> set_rpc_timeout(base::Duration timeout);

  /// Returns this member's id.
  WorkerId id() const noexcept;
  /// Returns this member's name.
  const std::string& name() const noexcept;
  /// Returns the address at which this worker listens; empty if it does not listen.
  std::string address() const;
  /// The channel kind to a peer ("shm", "unix", "tcp", "tcp+tls", "ucx", "ucx+tls", "loopback"); empty if there is
  /// none. With an address "shm:/path" it is "unix" where there is no shared memory, with "ucx:host:port" it is "tcp"
  /// where one side has no UCX.
  std::string channel_kind(const std::string& peer) const;
  /// Returns why the channel to a peer is not of the kind that its address names, or why large tensors go through its
  /// ring and are not read out of memory; empty if nothing is lacking, or if there is no channel. Threads: any.
  std::string channel_note(const std::string& peer) const;
  /// Returns the values that this worker owns and its references to values of others.
  std::vector<RRefInfo> rrefs() const;
  /// Returns the autograd contexts that are open here, this worker's own and those of others that it takes part in.
  std::vector<autograd::ContextInfo> autograd_contexts() const;
  /// Returns what this worker has counted up to now. Threads: any, also after `stop`.
  WorkerCounters counters() const;
  /// Returns what this worker has sent since it was launched, to itself included, in the order of the wire's kinds.
  /// Kinds of which it has sent nothing are left out. Threads: any, also after `stop`.
  std::vector<SentFrames> traffic() const;
  const std::shared_ptr<rpc::Caller>& caller() const noexcept { return caller_; }

 private:
  friend class actors::WorkerCore;
  Worker(std::shared_ptr<transport::PollingExecutor> executor, std::shared_ptr<actors::WorkerCore> core);

  std::shared_ptr<transport::PollingExecutor> executor_;  // destroyed last
  std::shared_ptr<actors::WorkerCore> core_;
  std::shared_ptr<rpc::Caller> caller_;
};

}  // namespace caftan
