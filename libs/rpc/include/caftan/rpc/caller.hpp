/// `Caller`: all that calls, futures and references need of a worker. Implemented by the worker; in tests by a fake
/// that serves itself. The typed calls of users are in call_site.hpp and rref.hpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "caftan/base/executor.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/gather.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan {

class Registry;
class Worker;

namespace rpc {

class CallHook;
class HostedObject;
class RRefHandle;

/// Owned by shared_ptr. Futures, references and call sites hold it weakly: used after the end of the worker, they
/// answer `shut_down`. Any of their threads may hold the last reference for a moment; so a destructor of an
/// implementation must neither block nor join threads. Threads: any, all methods.
class Caller : public std::enable_shared_from_this<Caller> {
 public:
  virtual ~Caller() = default;

  /// Returns the worker's id.
  virtual WorkerId id() const noexcept = 0;
  /// Returns the worker's name.
  virtual const std::string& name() const noexcept = 0;
  /// Returns the functions and classes that are registered at this worker.
  virtual const Registry& registry() const noexcept = 0;
  /// Returns where continuations and served calls run.
  virtual base::Executor& executor() noexcept = 0;
  /// Returns null when no hook is set.
  virtual CallHook* hook() noexcept = 0;
  /// Returns the timeout of calls that name none; 0 = none.
  virtual base::Duration default_timeout() const noexcept = 0;
  /// Returns the worker itself, for functions that have a `Worker&` as first parameter.
  virtual Worker& worker() noexcept = 0;

  /// Errors: unknown_worker (with the names there are).
  virtual Result<Peer> find_peer(std::string_view name) = 0;
  virtual Result<Peer> find_peer(WorkerId id) = 0;
  /// Returns whether `peer` came from this worker's find_peer.
  virtual bool knows(const PeerRecord& peer) const noexcept = 0;

  /// Sends a request of kind call, fetch, method or op. The reply or the error always arrives at `sink`.
  /// Waits for room in the peer's window unless `options.fail_when_full` (then `overloaded`).
  virtual CallToken submit(const Peer& peer, OutRequest&& request, const CallOptions& options,
                           std::shared_ptr<ReplySink> sink) = 0;

  /// Sends a request of kind call or method whose result no code wants: no reply comes. Waits for room as submit does.
  /// Errors: as those of submit; nothing was sent then.
  virtual Result<void> tell(const Peer& peer, OutRequest&& request, const CallOptions& options) = 0;

  /// Gives `value` to the members of a set in the next round of the set, and returns the values of all. `options` bound
  /// the time. Errors: docs/protocols/gather.md.
  virtual Future<Contributions> gather(GatherRequest&& request, const CallOptions& options) = 0;

  /// Gives a request up: its sink gets `cancelled` and the peer gets a cancel, unless the reply came first.
  virtual void cancel(const CallToken& token) noexcept = 0;

  /// Sends a request of kind create and returns the reference to the value to be: with a new RRefId and fork, or a
  /// local hold when `peer` is this worker. A failing creation is seen through the handle.
  /// @param type  of the value
  virtual Result<std::shared_ptr<RRefHandle>> create_remote(const Peer& peer, OutRequest&& request,
                                                            const CallOptions& options, TypeKey type) = 0;

  /// Returns a new id for a value that this worker is going to own.
  virtual RRefId make_rref_id() = 0;

  /// Makes this worker the owner of `object`, whose id came from make_rref_id, and returns a local hold.
  virtual Result<std::shared_ptr<RRefHandle>> create_local(std::shared_ptr<HostedObject> object) = 0;

  /// Gets the error of a call whose future was dropped unread, to log it. Called once for each such call.
  virtual void on_unobserved_error(std::string_view what, const Error& error) noexcept = 0;
};

}  // namespace rpc
}  // namespace caftan
