/// `CallSite`: the typed calls of a worker, as users see them; `Worker` and `RoleContext` are one.
///     int s = worker.rpc_sync<&add>("worker1", 1, 2);
///     Future<int> f = worker.rpc_async<&add>("worker1", 1, 2);
///     RRef<int> r = worker.remote<&add>("worker1", 1, 2);
///     worker.with({.timeout = 5s}).rpc_sync<&add>("worker1", 1, 2);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "caftan/rpc/function.hpp"
#include "caftan/rpc/named_object.hpp"
#include "caftan/rpc/operators.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan {

template <class T>
class Group;
/// Workers that are called together by functions.
using WorkerGroup = Group<void>;

namespace rpc {

/// Where a call goes: a worker's name or number, or a Peer (the quickest: nothing is looked up).
class Destination {
 public:
  Destination(const char* name) : to_(std::string_view(name)) {}         // NOLINT(google-explicit-constructor)
  Destination(std::string_view name) : to_(name) {}                      // NOLINT(google-explicit-constructor)
  Destination(const std::string& name) : to_(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)
  Destination(WorkerId id) : to_(id) {}                                  // NOLINT(google-explicit-constructor)
  Destination(const Peer& peer) : to_(&peer) {}                          // NOLINT(google-explicit-constructor)

  /// Errors: unknown_worker; bad_arguments (an empty Peer, or one of another Worker of this process).
  Result<Peer> find(Caller& caller) const;

 private:
  std::variant<std::string_view, WorkerId, const Peer*> to_;
};

}  // namespace rpc

/// Arguments are encoded before a call returns. Tensor bytes are read when they are written out: do not change a large
/// tensor in place until the call has ended.
/// Threads: any. The waiting forms block; they give the turn of the running object back meanwhile.
/// Errors of all calls: unknown_worker, unknown_function, bad_arguments, unsupported (an argument or result that cannot
///   travel), limit_exceeded (arguments or result larger than a message may be), overloaded, timeout, cancelled,
///   peer_down, peer_unreachable (the owner of a reference among them), remote_exception, user_error (with the kind
///   that the function gave it), would_deadlock, broken_promise, wrong_type, malformed_payload, shut_down; inside an
///   autograd context also context_released and foreign_context. `rpc_sync` and `remote` throw them as RpcException,
///   the `try_` forms return them, futures hold them.
class CallSite {
 public:
  explicit CallSite(std::weak_ptr<rpc::Caller> caller, CallOptions options = {})
      : caller_(std::move(caller)), options_(options) {}

  /// Returns a call site with options for its calls.
  CallSite with(CallOptions options) const { return CallSite(caller_, options); }

  /// Returns the worker of that name, checked once. Errors (thrown): unknown_worker, shut_down.
  Peer peer(rpc::Destination to) const { return try_peer(to).value(); }
  Result<Peer> try_peer(rpc::Destination to) const;

  /// Returns these workers as a group, whose calls go to all of them at once and have one future (group.hpp).
  ///     worker.group({"worker1", "worker2"}).rpc_all<&add>(1, 2).get();
  /// Errors (thrown): unknown_worker, shut_down, bad_arguments (no name, or one that is there twice).
  WorkerGroup group(const std::vector<std::string>& members) const;
  Result<WorkerGroup> try_group(const std::vector<std::string>& members) const;

  /// Calls the registered function F there and waits for its result.
  /// Source: torch.distributed.rpc.rpc_sync. Difference: checked by the compiler; exceptions arrive as
  /// remote_exception.
  template <auto F, class... A>
  auto rpc_sync(rpc::Destination to, const A&... arguments) const {  // no overload, no template
    return rpc_async<F>(to, arguments...).get();
  }
  template <auto F, class... A>
  auto try_rpc_sync(rpc::Destination to, const A&... arguments) const {  // no overload, no template
    return rpc_async<F>(to, arguments...).result();
  }
  /// Source: torch.distributed.rpc.rpc_async.
  template <auto F, class... A>
  auto rpc_async(rpc::Destination to, const A&... arguments) const {  // no overload, no template
    static_assert(rpc::kIsFunction<decltype(F)>,
                  "a method is called on a reference to its object: rref.rpc_sync<&Net::forward>(...)");
    using Types = rpc::CallTypes<decltype(F)>;
    const rpc::CallTarget target = target_of(to);
    return rpc::start_call<typename Types::Value>(target, rpc::find_key<F>(target), typename Types::Wire{},
                                                  arguments...);
  }
  /// Calls F there one way: no reply comes, and what F returns or throws stays there (its log has the errors). Returns
  /// when the call is handed over to a live session; it is delivered at most once. One-way calls of this worker to that
  /// one begin in order, and functions among them run one after the other; a later call of a method of the same object
  /// begins behind them. Those that had not ended there when the peer was lost are counted in this worker's log and in
  /// WorkerCounters::tells_lost. Several leave in one system call. It waits while there is no room, as other calls do
  /// (limits.send_queue, limits.pending_calls count those that have not ended there); the time-out bounds that wait
  /// only. Nothing of an autograd context goes along.
  /// Errors (thrown; try_tell returns them): as all calls, but those of the function; unsupported inside an autograd
  ///   context, for an argument that needs gradients. Rules: docs/protocols/tell.md.
  template <auto F, class... A>
  void tell(rpc::Destination to, const A&... arguments) const {  // no overload, no template
    try_tell<F>(to, arguments...).value();
  }
  template <auto F, class... A>
  Result<void> try_tell(rpc::Destination to, const A&... arguments) const {  // no overload, no template
    static_assert(rpc::kIsFunction<decltype(F)>,
                  "a method is called on a reference to its object: rref.tell<&Net::forward>(...)");
    const rpc::CallTarget target = target_of(to);
    return rpc::start_tell(target, rpc::find_key<F>(target), typename rpc::CallTypes<decltype(F)>::Wire{},
                           arguments...);
  }

  /// Runs F there, keeps its result there and returns a reference to it, without waiting for F. Like all calls it waits
  /// while there is no room for it (limits.send_queue, limits.pending_calls). Once more than 4096 released references
  /// of this worker have not ended, it also waits until half of them have. The turn of the running object is given back
  /// during both waits; CallOptions::fail_when_full skips them.
  /// Source: torch.distributed.rpc.remote.
  template <auto F, class... A>
  auto remote(rpc::Destination to, const A&... arguments) const {  // no overload, no template
    return try_remote<F>(to, arguments...).value();
  }
  template <auto F, class... A>
  auto try_remote(rpc::Destination to, const A&... arguments) const {  // no overload, no template
    static_assert(rpc::kIsFunction<decltype(F)>,
                  "a method is called on a reference to its object: rref.remote<&Net::forward>(...)");
    using Types = rpc::CallTypes<decltype(F)>;
    const rpc::CallTarget target = target_of(to);
    return create<typename Types::Value>(target, rpc::find_key<F>(target), typename Types::Wire{}, arguments...);
  }

  // The calls above with a RemoteFunction instead of F: for callers without the callee's code.
  template <class R, class... P, class... A>
  auto rpc_sync(const RemoteFunction<R(P...)>& function, rpc::Destination to, const A&... arguments) const {
    return rpc_async(function, to, arguments...).get();
  }
  template <class R, class... P, class... A>
  auto try_rpc_sync(const RemoteFunction<R(P...)>& function, rpc::Destination to, const A&... arguments) const {
    return rpc_async(function, to, arguments...).result();
  }
  template <class R, class... P, class... A>
  auto rpc_async(const RemoteFunction<R(P...)>& function, rpc::Destination to, const A&... arguments) const {
    using Types = typename RemoteFunction<R(P...)>::Types;
    const rpc::CallTarget target = target_of(to);
    return rpc::start_call<typename Types::Value>(target, rpc::check_key(target, function.key()),
                                                  typename Types::Wire{}, arguments...);
  }
  template <class R, class... P, class... A>
  void tell(const RemoteFunction<R(P...)>& function, rpc::Destination to, const A&... arguments) const {
    try_tell(function, to, arguments...).value();
  }
  template <class R, class... P, class... A>
  Result<void> try_tell(const RemoteFunction<R(P...)>& function, rpc::Destination to, const A&... arguments) const {
    const rpc::CallTarget target = target_of(to);
    return rpc::start_tell(target, rpc::check_key(target, function.key()),
                           typename RemoteFunction<R(P...)>::Types::Wire{}, arguments...);
  }
  template <class R, class... P, class... A>
  auto remote(const RemoteFunction<R(P...)>& function, rpc::Destination to, const A&... arguments) const {
    return try_remote(function, to, arguments...).value();
  }
  template <class R, class... P, class... A>
  auto try_remote(const RemoteFunction<R(P...)>& function, rpc::Destination to, const A&... arguments) const {
    using Types = typename RemoteFunction<R(P...)>::Types;
    const rpc::CallTarget target = target_of(to);
    return create<typename Types::Value>(target, rpc::check_key(target, function.key()), typename Types::Wire{},
                                         arguments...);
  }

  /// Waits until all `members` have called this with the same set of members, this worker among them. A worker serves
  /// its peers meanwhile. Sets without a common member do not disturb each other.
  /// @param members  names, in any order; none = all members of the job
  /// The time-out is that of calls; `worker.with({.timeout = 5s}).barrier()`.
  /// Errors (thrown; try_barrier returns them): timeout (naming the members that have not called it), peer_down (a
  ///   member is lost: naming it), overloaded (another barrier or all_gather of these members is under way here),
  ///   unknown_worker, bad_arguments (a name twice, or without this worker's), shut_down. After an error the next call
  ///   goes on with the same round: docs/protocols/gather.md.
  /// Source: torch.distributed.rpc.api._barrier, _wait_all_workers. Difference: errors are not swallowed.
  void barrier(const std::vector<std::string>& members = {}) const { try_barrier(members).value(); }
  Result<void> try_barrier(const std::vector<std::string>& members = {}) const {
    return barrier_async(members).result();
  }
  /// As barrier, without waiting.
  Future<void> barrier_async(const std::vector<std::string>& members = {}) const;

  /// Gives `value` to all `members` and returns the values of all, by name, when all have called this: a barrier with
  /// values. All give a value of the same type, with tensors if they like, and without references.
  ///     std::map<std::string, double> losses = worker.all_gather(loss);
  /// Errors (thrown; try_all_gather returns them): as barrier; wrong_type (a member gives another type: naming it),
  ///   unsupported (the value cannot travel), limit_exceeded.
  /// Source: torch.distributed.rpc.api._all_gather.
  template <class T>
  std::map<std::string, T> all_gather(const T& value, const std::vector<std::string>& members = {}) const {
    return try_all_gather(value, members).value();
  }
  template <class T>
  Result<std::map<std::string, T>> try_all_gather(const T& value, const std::vector<std::string>& members = {}) const {
    return all_gather_async(value, members).result();
  }
  /// As all_gather, without waiting.
  template <class T>
  Future<std::map<std::string, T>> all_gather_async(const T& value,
                                                    const std::vector<std::string>& members = {}) const {
    static_assert(rpc::enable_sending<T>, "this value cannot travel, since it has no serialize");
    Result<rpc::Contribution> own = rpc::contribute(value);
    if (!own) return make_ready_future<std::map<std::string, T>>(own.error());
    return gather("all_gather", members, *std::move(own)).then([](Result<rpc::Contributions> all) {
      return all ? rpc::take_contributions<T>(*all) : Result<std::map<std::string, T>>(all.error());
    });
  }

  /// Makes an object of the registered class C there. Its constructor's parameters are the types of the arguments, or
  /// P... where these differ: `remote<Net, std::int64_t>("worker1", 4)`.
  template <class C, class... P, class... A>
  RRef<C> remote(rpc::Destination to, const A&... arguments) const {
    return try_remote<C, P...>(to, arguments...).value();
  }
  template <class C, class... P, class... A>
  Result<RRef<C>> try_remote(rpc::Destination to, const A&... arguments) const {
    using Given = rpc::TypeList<Parameter<A>...>;
    using Wire = std::conditional_t<sizeof...(P) == 0, Given, rpc::TypeList<P...>>;
    const rpc::CallTarget target = target_of(to);
    return create<C>(target,
                     constructor_key(target, &rpc::kClassTag<C>, rpc::signature_of<C, Wire>(), wire::type_name<C>()),
                     Wire{}, arguments...);
  }

  /// Returns a reference to the object `name` of that worker, and waits for it. The first call makes it, from these
  /// arguments, as `remote<C, P...>` would; all others, from whatever worker and also while it is made, get a
  /// reference to the same object, and their arguments are not looked at. If the constructor throws, all calls that
  /// wait for it fail, and the next one tries again. The name keeps the object until its worker stops. A constructor
  /// must not ask for its own name: it would wait for itself.
  ///     RRef<Board> board = worker.get_or_create<Board>("server", "board", 8, 8);
  /// Errors: as all calls; wrong_type (an object of another class has that name; the text names both), bad_arguments
  /// (an empty name).
  template <class C, class... P, class... A>
  RRef<C> get_or_create(rpc::Destination to, std::string_view name, const A&... arguments) const {
    return try_get_or_create<C, P...>(to, name, arguments...).value();
  }
  template <class C, class... P, class... A>
  Result<RRef<C>> try_get_or_create(rpc::Destination to, std::string_view name, const A&... arguments) const {
    using Given = rpc::TypeList<Parameter<A>...>;
    using Wire = std::conditional_t<sizeof...(P) == 0, Given, rpc::TypeList<P...>>;
    const rpc::CallTarget target = target_of(to);
    auto object = rpc::get_or_create<C>(
        target, name, constructor_key(target, &rpc::kClassTag<C>, rpc::signature_of<C, Wire>(), wire::type_name<C>()),
        Wire{}, arguments...);
    if (!object) return object.error();
    return RRef<C>(*std::move(object));
  }

  /// Makes this worker the owner of `value` and returns a reference to hand out. A tensor (or container of tensors)
  /// referred to from inside a method or constructor takes its turns with that object: its fetches and steps never
  /// overlap with the object's methods.
  /// Errors (thrown): shut_down.
  template <class T>
  RRef<std::decay_t<T>> make_rref(T&& value) const {
    const std::shared_ptr<rpc::Caller> caller = alive().value();
    auto object = rpc::make_hosted_part<std::decay_t<T>>(caller->make_rref_id(), caller->executor(),
                                                         rpc::Strand::held_here(), std::forward<T>(value));
    return RRef<std::decay_t<T>>(caller->create_local(std::move(object)).value());
  }
  /// Constructs a T from `arguments` in place, where it need be neither copied nor moved, and makes this worker its
  /// owner: `worker.make_rref<Net>(4, 2)`. What its constructor makes references to takes its turns with the object.
  /// Errors (thrown): shut_down, and what T's constructor throws.
  template <class T, class... A>
  requires(std::is_same_v<T, std::decay_t<T>> &&
           !(sizeof...(A) == 1 && (std::is_same_v<T, A> && ...))) RRef<T> make_rref(A&&... arguments)
  const {
    static_assert(std::is_constructible_v<T, A...>, "make_rref<T>(...): T has no constructor for these arguments");
    const std::shared_ptr<rpc::Caller> caller = alive().value();
    auto object = rpc::construct_hosted_part<T>(caller->make_rref_id(), caller->executor(), rpc::Strand::held_here(),
                                                std::forward<A>(arguments)...);
    return RRef<T>(caller->create_local(std::move(object)).value());
  }

  /// Runs a pure ATen operator at a worker: `rpc_op("worker1", "aten::add", a, b, rpc::kwarg("alpha", 2))`; the
  /// arguments choose the overload unless it is named ("aten::add.Tensor"). Operator and arguments are checked here,
  /// before the call. Refused are operators that mutate, touch the callee's files or process, or draw from a generator
  /// object.
  /// Errors: as all calls; wrong_type when the result is not one tensor.
  template <class... A>
  at::Tensor rpc_op(rpc::Destination to, std::string_view schema, A&&... arguments) const {
    return try_rpc_op(to, schema, std::forward<A>(arguments)...).value();
  }
  template <class... A>
  Result<at::Tensor> try_rpc_op(rpc::Destination to, std::string_view schema, A&&... arguments) const {
    return rpc::single_tensor(rpc_op_async(to, schema, std::forward<A>(arguments)...).result());
  }
  /// As rpc_op, without waiting; the future gets all results of the operator.
  template <class... A>
  Future<rpc::OperatorValues> rpc_op_async(rpc::Destination to, std::string_view schema, A&&... arguments) const {
    std::vector<rpc::OperatorArgument> list;
    (list.emplace_back(std::forward<A>(arguments)), ...);
    return rpc::start_operator(target_of(to), schema, list);
  }
  /// As rpc_op; the one resulting tensor stays at that worker, and a reference to it is returned.
  /// Source: torch.distributed.rpc.remote with a builtin operator.
  template <class... A>
  RRef<at::Tensor> remote_op(rpc::Destination to, std::string_view schema, A&&... arguments) const {
    std::vector<rpc::OperatorArgument> list;
    (list.emplace_back(std::forward<A>(arguments)), ...);
    return RRef<at::Tensor>(rpc::start_operator_creation(target_of(to), schema, list).value());
  }

  /// Runs a method of a TorchScript file that the worker serves (`[roles.NAME.scripts]`, `Registry::add_script`):
  /// `rpc_script("server", "policy.forward", x, rpc::kwarg("temperature", 0.5))`. The callee compares the arguments
  /// with the method's schema and adds its default values. Autograd records the call as that of a function. Errors: as
  /// all calls; wrong_type when the result is not one tensor. Source: torch.distributed.rpc.rpc_sync with a function of
  /// TorchScript. Difference: the callee has the code, from a file of its own that was checked; no code travels.
  template <class... A>
  at::Tensor rpc_script(rpc::Destination to, std::string_view function, A&&... arguments) const {
    return try_rpc_script(to, function, std::forward<A>(arguments)...).value();
  }
  template <class... A>
  Result<at::Tensor> try_rpc_script(rpc::Destination to, std::string_view function, A&&... arguments) const {
    return rpc::single_tensor(rpc_script_async(to, function, std::forward<A>(arguments)...).result(), function,
                              "rpc_script_async");
  }
  /// As rpc_script, without waiting; the future gets the result, of a tuple its parts.
  template <class... A>
  Future<rpc::OperatorValues> rpc_script_async(rpc::Destination to, std::string_view function, A&&... arguments) const {
    std::vector<rpc::OperatorArgument> list;
    (list.emplace_back(std::forward<A>(arguments)), ...);
    return rpc::start_script(target_of(to), function, list);
  }
  /// As rpc_script; the one resulting tensor stays at that worker, and a reference to it is returned. An error of the
  /// script is that of each use of the reference.
  /// Source: torch.distributed.rpc.remote with a function of TorchScript.
  template <class... A>
  RRef<at::Tensor> remote_script(rpc::Destination to, std::string_view function, A&&... arguments) const {
    return try_remote_script(to, function, std::forward<A>(arguments)...).value();
  }
  template <class... A>
  Result<RRef<at::Tensor>> try_remote_script(rpc::Destination to, std::string_view function, A&&... arguments) const {
    std::vector<rpc::OperatorArgument> list;
    (list.emplace_back(std::forward<A>(arguments)), ...);
    auto made = rpc::start_script_creation(target_of(to), function, list);
    return made ? Result<RRef<at::Tensor>>(RRef<at::Tensor>(*std::move(made))) : Result<RRef<at::Tensor>>(made.error());
  }

  /// Errors: shut_down.
  Result<std::shared_ptr<rpc::Caller>> alive() const;

 private:
  /// The wire type of a constructor argument: literals are strings.
  template <class A>
  using Parameter = std::conditional_t<std::is_convertible_v<std::decay_t<const A&>, std::string_view> &&
                                           !std::is_same_v<std::decay_t<A>, std::string>,
                                       std::string, std::decay_t<A>>;

  rpc::CallTarget target_of(const rpc::Destination& to) const;
  Future<rpc::Contributions> gather(std::string what, const std::vector<std::string>& members,
                                    rpc::Contribution value) const;
  static Result<const rpc::FunctionKey*> constructor_key(const rpc::CallTarget& target, const char* class_tag,
                                                         std::string_view signature, std::string_view type);
  template <class Value, class... P, class... A>
  static Result<RRef<Value>> create(const rpc::CallTarget& target, const Result<const rpc::FunctionKey*>& key,
                                    rpc::TypeList<P...> types, const A&... arguments) {
    auto made = rpc::start_creation<Value>(target, key, types, arguments...);
    if (!made) return made.error();
    return RRef<Value>(*std::move(made));
  }

  std::weak_ptr<rpc::Caller> caller_;
  CallOptions options_;
};

}  // namespace caftan
