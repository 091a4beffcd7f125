/// `Dispatcher`: serves the requests that arrive. It finds the registered function, decodes the arguments, runs user
/// code on the current thread (or on the object's strand), encodes the result and answers. The worker calls it on a
/// runner, after references are confirmed (RR-6).
#pragma once

#include <memory>

#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/internal/batches.hpp"
#include "caftan/rpc/internal/named_objects.hpp"
#include "caftan/rpc/internal/permission_table.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan::rpc {

/// Every method answers its Responder or completes its future on every path, also when user code throws.
/// Threads: any, all methods. They block as long as the user's code does, except where it had to queue for a strand.
class Dispatcher {
 public:
  /// @param caller  the worker served; must be owned by shared_ptr and outlive the calls of these methods
  explicit Dispatcher(Caller& caller) : caller_(caller), batches_(std::make_shared<Batches>(caller)) {}

  /// Refuses from now on what the table refuses: not_permitted. Without a table everything is allowed.
  /// @param permissions  outlives this; called before the first request
  void set_permissions(const PermissionTable& permissions) noexcept { permissions_ = &permissions; }

  /// What is known of a request when its frame is read.
  struct Sought {
    const FunctionEntry* entry = nullptr;  ///< the function or method that it runs, for InPayload::entry; null = none
    /// The thread that reads frames may run it before it reads on: it is registered as brief, or unknown, and refusing
    /// it takes no time.
    bool brief = false;
  };
  Sought look_up(wire::FrameKind kind, wire::ByteView body) const noexcept;

  /// Kind call: runs a registered function, or finds or makes a named object.
  /// Answers: unknown_function, bad_arguments (signature or values), remote_exception, what the function returns.
  void call(InPayload&& payload, CallInfo&& info, Responder responder);

  /// Kind op: runs a pure ATen operator. Answers: unknown_function, bad_arguments, remote_exception (its own error).
  void op(InPayload&& payload, CallInfo&& info, Responder responder);

  /// Kind method: runs a registered method on `object`, on its strand.
  /// Answers: as call, and wrong_type, would_deadlock.
  void method(std::shared_ptr<HostedObject> object, InPayload&& payload, CallInfo&& info, Responder responder);

  /// Kind fetch: sends the value of `object`, taken on its strand.
  /// Answers: unsupported (its type cannot be serialized), would_deadlock.
  void fetch(std::shared_ptr<HostedObject> object, InPayload&& payload, CallInfo&& info, Responder responder);

  /// Kind create: runs a function, constructor, operator or (on `object`) a method and returns its result as hosted
  /// object. Only the completion of the creation needs a reply to the peer; the worker gives it.
  /// @param object  the object of a method, null else
  /// @param id      the RRef whose value it becomes
  Future<std::shared_ptr<HostedObject>> create(std::shared_ptr<HostedObject> object, InPayload&& payload,
                                               CallInfo&& info, RRefId id);

  /// The objects of this worker that have names.
  NamedObjects& named_objects() noexcept { return names_; }
  /// The calls of batched functions that wait.
  Batches& batches() noexcept { return *batches_; }

 private:
  void start(std::shared_ptr<HostedObject> object, InPayload&& payload, CallInfo&& info, Completion&& completion);

  Caller& caller_;
  const PermissionTable* permissions_ = nullptr;
  NamedObjects names_;
  const std::shared_ptr<Batches> batches_;  // timers hold it weakly
};

}  // namespace caftan::rpc
