/// `RemoteModule`: a module that lives at another worker and is used as a local one. Both workers register its class
/// (`add_module`, served_module.hpp):
///     nn::RemoteModule<Net> net(worker, "ps", 64);
///     at::Tensor y = net.forward(x);
///     optim::DistributedOptimizer optimizer(worker, net.parameters(), optim::Adam{.lr = 1e-3});
/// It travels in arguments and results like a reference. Rules: docs/protocols/modules.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "caftan/nn/named_tensor.hpp"
#include "caftan/nn/served_module.hpp"
#include "caftan/rpc/call_site.hpp"

namespace caftan::nn {

class ModuleControl;

/// How the state of a module travels, and how long to wait before the state changes.
struct StateOptions {
  std::uint64_t chunk = std::uint64_t{1} << 20;  ///< bytes of values in one message; one element at least
  /// Of load_state_dict and to, >= 0: for autograd contexts to end in which a method of the module was called.
  base::Duration wait = std::chrono::seconds(1);
};

/// What a RemoteModule is whatever its class: a handle of a module at its owner. Copies refer to the same module; each
/// has its own mode. Default-made it is empty; what it calls then answers bad_arguments.
/// Errors of all that ask the owner: as CallSite, and those of the module's creation. `try_` forms return them, the
///   others throw them as RpcException.
/// Threads: one at a time for one handle; copies are independent. What asks the owner blocks.
class ModuleHandle {
 public:
  ModuleHandle() = default;

  explicit operator bool() const noexcept { return static_cast<bool>(module_); }
  /// Returns the worker that has the module. Precondition: not empty.
  Peer owner() const { return module_.owner(); }
  /// Returns the name of that worker. Precondition: not empty.
  const std::string& owner_name() const { return module_.owner_name(); }
  /// Returns a future that is ready when the module has been made, with the error if it was not. Precondition: not
  /// empty. Errors: as RRef::created.
  Future<void> created() const;
  /// Returns the reference to the module itself, the same for all copies.
  /// Source: torch.distributed.nn.RemoteModule.get_module_rref.
  const RRef<ServedModule>& module_rref() const noexcept { return module_; }

  /// Sets the mode of later calls through this handle, and of handles that are copied or sent from it; no call of
  /// another handle changes (MD-3). A new module is called in train mode.
  /// Source: torch.nn.Module.train. Difference: nothing is sent.
  void train(bool on = true) noexcept { training_ = on; }
  /// As train(false).
  void eval() noexcept { training_ = false; }
  /// Returns whether later calls are in train mode.
  bool is_training() const noexcept { return training_; }

  /// Returns a reference to each parameter, in the module's order: the same references each time, for all handles. A
  /// tensor with several names is listed once. One round trip, and no value travels.
  /// Source: torch.distributed.nn.RemoteModule.remote_parameters. Difference: that makes new references each time.
  std::vector<RRef<at::Tensor>> parameters() const { return try_parameters().value(); }
  Result<std::vector<RRef<at::Tensor>>> try_parameters() const;
  /// As parameters, with their names.
  std::vector<NamedReference> named_parameters() const { return try_named_parameters().value(); }
  Result<std::vector<NamedReference>> try_named_parameters() const;
  /// As parameters, of the buffers.
  std::vector<RRef<at::Tensor>> buffers() const { return try_buffers().value(); }
  Result<std::vector<RRef<at::Tensor>>> try_buffers() const;
  /// As buffers, with their names.
  std::vector<NamedReference> named_buffers() const { return try_named_buffers().value(); }
  Result<std::vector<NamedReference>> try_named_buffers() const;

  /// Returns all parameters and buffers with the values of one moment, in as many messages as they need, which come
  /// from the owner alone. The tensors have no graph and require no gradients.
  /// Errors: unsupported (a tensor that is sparse, quantized or not on the CPU), limit_exceeded (no memory for a copy).
  /// Source: torch.nn.Module.state_dict.
  StateDict state_dict(const StateOptions& options = {}) const { return try_state_dict(options).value(); }
  Result<StateDict> try_state_dict(const StateOptions& options = {}) const;
  /// Gives the module these values: all, or none where it fails. The order of names does not matter.
  /// Errors: bad_arguments (naming what is missing, unknown, given twice, or of other sizes or dtype), module_busy,
  ///   unsupported (as state_dict; a tensor of the module that cannot be written). After `timeout` or `peer_down` it
  ///   may have happened: repeat it.
  /// Source: torch.nn.Module.load_state_dict. Difference: always strict.
  void load_state_dict(const StateDict& state, const StateOptions& options = {}) const {
    try_load_state_dict(state, options).value();
  }
  Result<void> try_load_state_dict(const StateDict& state, const StateOptions& options = {}) const;
  /// Moves the module to a device of its owner, for now "cpu" only.
  /// Errors: bad_arguments (no name of a device), unsupported (another device), module_busy.
  /// Source: torch.nn.Module.to.
  void to(const std::string& device, const StateOptions& options = {}) const { try_to(device, options).value(); }
  Result<void> try_to(const std::string& device, const StateOptions& options = {}) const;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& module_& control_& training_;
  }

 protected:
  /// Lets the owner make the actor of `module`, which becomes that of this handle.
  Result<void> serve(const CallSite& site, const rpc::Destination& to, RRef<ServedModule> module);

  RRef<ServedModule> module_;
  RRef<ModuleControl> control_;
  bool training_ = true;
  CallOptions options_;

 private:
  RRefCalls<ModuleControl> control() const;
  Result<std::vector<NamedReference>> list(TensorKind kind) const;
};

namespace detail {

/// The wire type of a constructor's argument: literals are strings.
template <class A>
using Parameter = std::conditional_t<std::is_convertible_v<std::decay_t<const A&>, std::string_view>, std::string,
                                     std::decay_t<const A&>>;

/// The wire types of a constructor: P, or those of the arguments where no P is given.
template <class List, class... A>
struct WireOfImpl {
  /// The list of types.
  using type = List;
};
template <class... A>
struct WireOfImpl<rpc::TypeList<>, A...> {
  using type = rpc::TypeList<Parameter<A>...>;
};
template <class List, class... A>
using WireOf = typename WireOfImpl<List, A...>::type;

/// Returns the error for a constructor that `registry` does not have.
Error no_constructor(std::string_view type, std::string_view signature);
/// Returns the error for a method, or function around one, that is not registered at this worker.
Error no_method(std::string_view type, std::string_view method);

/// Makes a Net at `to` with the registered function Make of the constructor C, without waiting for it.
template <class Net, class C, auto Make, class... A>
Result<RRef<ServedModule>> try_construct(const CallSite& site, const rpc::Destination& to, const A&... arguments) {
  const auto caller = site.alive();
  if (!caller) return caller.error();
  if (!(*caller)->registry().find(&rpc::kFunctionTag<void, Make>)) {
    return no_constructor(wire::type_name<Net>(), rpc::signature_of<Net, typename C::Types>());
  }
  return site.try_remote<Make>(to, arguments...);
}

}  // namespace detail

/// A module of the class Net at its owner. See ModuleHandle for its modes, parameters and state.
/// Source: torch.distributed.nn.RemoteModule. Differences: any registered method can be called; the mode belongs to the
///   handle; parameters are the same references each time; state, device and functions around methods are there.
template <class Net>
class RemoteModule : public ModuleHandle {
 public:
  RemoteModule() = default;
  /// Makes a Net at the worker `to`, without waiting for it. Its constructor's parameters are the types of the
  /// arguments; where these differ, `try_make<P...>` has them. An error of the constructor is that of each use.
  /// @param site  a Worker or a RoleContext
  /// Errors (thrown): unknown_worker, unknown_function (the class or this constructor is not registered here), and what
  ///   `remote` throws.
  template <class... A>
  RemoteModule(const CallSite& site, const rpc::Destination& to, const A&... arguments)
      : RemoteModule(try_make(site, to, arguments...).value()) {}
  /// As the constructor, without throwing.
  template <class... P, class... A>
  static Result<RemoteModule> try_make(const CallSite& site, const rpc::Destination& to, const A&... arguments) {
    using Constructor = detail::ModuleConstructor<Net, detail::WireOf<rpc::TypeList<P...>, A...>>;
    auto module = detail::try_construct<Net, Constructor, Constructor::kMake>(site, to, arguments...);
    if (!module) return module.error();
    RemoteModule made;
    const Result<void> served = made.serve(site, to, *std::move(module));
    if (!served) return served.error();
    return made;
  }

  /// Returns a handle with options for its calls: `net.with({.timeout = 5s}).forward(x)`. They are not sent along.
  RemoteModule with(CallOptions options) const {
    RemoteModule other = *this;
    other.options_ = options;
    return other;
  }

  /// Calls Net::forward and waits. Source: torch.distributed.nn.RemoteModule.forward.
  template <class... A>
  auto forward(const A&... arguments) const {
    return rpc_sync<&Net::forward>(arguments...);
  }
  /// As forward, without waiting. Source: torch.distributed.nn.RemoteModule.forward_async.
  template <class... A>
  auto forward_async(const A&... arguments) const {
    return rpc_async<&Net::forward>(arguments...);
  }
  /// Calls Net::forward and keeps its result at the owner: stages of a pipeline take it as a reference.
  template <class... A>
  auto forward_remote(const A&... arguments) const {
    return remote<&Net::forward>(arguments...);
  }

  /// Calls the registered method M in the mode of this handle, and waits. Autograd records it as any call.
  /// Errors (thrown): as RRef::rpc_sync; would_deadlock (the call comes from inside a method of the same module).
  template <auto M, class... A>
  auto rpc_sync(const A&... arguments) const {  // no overload, no template
    return rpc_async<M>(arguments...).get();
  }
  template <auto M, class... A>
  auto try_rpc_sync(const A&... arguments) const {  // no overload, no template
    return rpc_async<M>(arguments...).result();
  }
  /// As rpc_sync, without waiting.
  template <auto M, class... A>
  auto rpc_async(const A&... arguments) const {  // no overload, no template
    using Types = typename MethodTypes<M>::Run;
    static_assert(rpc::Arguments<typename MethodTypes<M>::Wire>::template check<const A&...>());
    const rpc::CallTarget target = rpc::target_of(module_.handle(), options_);
    return rpc::start_call<typename Types::Value>(target, key_of<M>(target), typename Types::Wire{}, training_,
                                                  arguments...);
  }
  /// Calls M and keeps its result at the owner.
  template <auto M, class... A>
  auto remote(const A&... arguments) const {  // no overload, no template
    return try_remote<M>(arguments...).value();
  }
  template <auto M, class... A>
  auto try_remote(const A&... arguments) const {  // no overload, no template
    using Types = typename MethodTypes<M>::Run;
    using Made = RRef<typename Types::Value>;
    static_assert(rpc::Arguments<typename MethodTypes<M>::Wire>::template check<const A&...>());
    const rpc::CallTarget target = rpc::target_of(module_.handle(), options_);
    auto made = rpc::start_creation<typename Types::Value>(target, key_of<M>(target), typename Types::Wire{}, training_,
                                                           arguments...);
    return made ? Result<Made>(Made(*std::move(made))) : Result<Made>(made.error());
  }

  /// Adds the function F, registered with ModuleBuilder::before, to what runs before the method M in calls of all
  /// handles, after those that were added earlier. Waits. Adding it twice changes nothing.
  /// Errors (thrown): as rpc_sync.
  template <auto M, auto F>
  void add_before() const {
    set_hook<detail::ModuleHook<Net, M, F>::kBefore, F>(true);
  }
  /// Takes F away again. Errors (thrown): as rpc_sync.
  template <auto M, auto F>
  void remove_before() const {
    set_hook<detail::ModuleHook<Net, M, F>::kBefore, F>(false);
  }
  /// As add_before, for functions registered with ModuleBuilder::after, which run after M.
  template <auto M, auto F>
  void add_after() const {
    set_hook<detail::ModuleHook<Net, M, F>::kAfter, F>(true);
  }
  /// Takes F away again. Errors (thrown): as rpc_sync.
  template <auto M, auto F>
  void remove_after() const {
    set_hook<detail::ModuleHook<Net, M, F>::kAfter, F>(false);
  }

 private:
  template <auto M>
  struct MethodTypes {
    using Wire = typename rpc::CallTypes<decltype(M)>::Wire;
    using Run = rpc::CallTypes<typename detail::ModuleMethod<Net, M>::Pointer>;
  };
  template <auto M>
  static Result<const rpc::FunctionKey*> key_of(const rpc::CallTarget& target) {
    return named<M>(target, rpc::find_key<detail::ModuleMethod<Net, M>::kRun, ServedModule>(target));
  }
  /// Lets the error of a method or function that this worker has not registered name M as the user wrote it.
  template <auto M>
  static Result<const rpc::FunctionKey*> named(const rpc::CallTarget& target,
                                               const Result<const rpc::FunctionKey*>& key) {
    const bool has_module = target.peer && target.caller;
    if (key || !has_module) return key;
    return detail::no_method(wire::type_name<Net>(), rpc::function_name<M>());
  }
  template <auto Set, auto F>
  void set_hook(bool on) const {
    const rpc::CallTarget target = rpc::target_of(module_.handle(), options_);
    rpc::start_call<void>(target, named<F>(target, rpc::find_key<Set, ServedModule>(target)), rpc::TypeList<bool>{}, on)
        .get();
  }
};

}  // namespace caftan::nn
