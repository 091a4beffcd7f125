/// `add_module`: what a worker registers so that peers make modules of a class there and call their methods:
///     nn::add_module<Net>(registry, "net").constructor<int>().method<&Net::forward>("forward");
/// A Net is a subclass of torch::nn::Module, or a plain class. Of a plain class `named_parameters() const` and
/// `named_buffers() const`, which return a std::vector<nn::NamedTensor>, say which tensors are its own, and
/// `train(bool)` gets the mode; it may lack each of the three. Callers register the same and use remote_module.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "caftan/nn/named_tensor.hpp"
#include "caftan/rpc/registry.hpp"

namespace caftan::nn {

/// Which tensors of a module are meant.
enum class TensorKind : std::uint8_t { parameter, buffer };
constexpr bool is_valid(TensorKind kind) noexcept { return kind <= TensorKind::buffer; }

namespace detail {

/// The description of a class of modules at run time.
struct ModuleType {
  rpc::TypeKey key;
  std::vector<NamedTensor> (*tensors)(const void* module, TensorKind kind);
  /// Sets the mode of the module.
  /// @param known  the mode that was set last
  void (*set_mode)(void* module, bool training, std::optional<bool> known);
};

/// Copies torch's dictionary, or the list of a plain class.
template <class List>
std::vector<NamedTensor> to_named(const List& list) {
  std::vector<NamedTensor> named;
  for (const auto& item : list) {
    if constexpr (requires { item.key(); }) {
      named.push_back({item.key(), item.value()});
    } else {
      named.push_back({item.name, item.tensor});
    }
  }
  return named;
}

template <class Net>
std::vector<NamedTensor> tensors_of([[maybe_unused]] const void* module, [[maybe_unused]] TensorKind kind) {
  [[maybe_unused]] const Net& net = *static_cast<const Net*>(module);
  if (kind == TensorKind::buffer) {
    if constexpr (requires { net.named_buffers(); }) return to_named(net.named_buffers());
  } else {
    if constexpr (requires { net.named_parameters(); }) return to_named(net.named_parameters());
  }
  return {};
}

template <class Net>
void set_mode_of([[maybe_unused]] void* module, [[maybe_unused]] bool training,
                 [[maybe_unused]] std::optional<bool> known) {
  [[maybe_unused]] Net& net = *static_cast<Net*>(module);
  if constexpr (requires { net.is_training(); }) known = net.is_training();
  if constexpr (requires { net.train(training); }) {
    if (known != training) net.train(training);
  }
}

template <class Net>
inline constexpr ModuleType kModuleType{rpc::type_key<Net>(), &tensors_of<Net>, &set_mode_of<Net>};

/// Says which calls of a module may run, where trainers share the module (shared_module.hpp). Threads: any.
class ModuleGate {
 public:
  virtual ~ModuleGate() = default;
  /// A call is about to run. Errors: why it must not.
  virtual Result<void> enter(const CallInfo& info) = 0;
  /// A call that was let in has returned or thrown.
  virtual void leave() noexcept = 0;
  /// Returns whether something reads the module, or is about to change it by what it has read.
  virtual bool is_in_use() const noexcept = 0;
};

/// What the method M of a module returns to its caller; the callee may answer with an error of its own in any case.
template <auto M>
struct ReturnedBy {
  using Given = std::remove_cvref_t<typename rpc::CallTypes<decltype(M)>::Traits::Result>;
  using type = std::conditional_t<rpc::kIsFuture<Given> || rpc::kIsResult<Given>, Given, Result<Given>>;
};

/// Calls `function(module, values...)` for a function before a method, `function(module, result)` for one behind it.
template <class Net, auto F, class Values>
void call_before(void* module, void* values) {
  std::apply([module](auto&... value) { F(*static_cast<Net*>(module), value...); }, *static_cast<Values*>(values));
}
template <class Net, auto F, class Value>
void call_after(void* module, void* value) {
  F(*static_cast<Net*>(module), *static_cast<Value*>(value));
}

}  // namespace detail

/// A module at its owner, whatever its class: what a reference to a module refers to. Threads: its strand's.
class ServedModule {
 public:
  /// @param module  not null
  template <class Net>
  explicit ServedModule(std::shared_ptr<Net> module)
      : type_(&detail::kModuleType<Net>),
        module_(std::move(module)),
        claimed_(std::make_unique<std::atomic<bool>>(false)) {}
  /// @param another  makes a further module of the same class and arguments; may throw what the constructor throws
  template <class Net>
  ServedModule(std::shared_ptr<Net> module, std::function<std::shared_ptr<void>()> another)
      : ServedModule(std::move(module)) {
    another_ = std::move(another);
  }

  /// Returns the parameters or buffers, as the module lists them now. Throws what the module throws.
  std::vector<NamedTensor> tensors(TensorKind kind) const { return type_->tensors(module_.get(), kind); }
  /// Returns the name of the module's class; lives as long as the program.
  std::string_view type() const noexcept { return type_->key.name; }
  /// Returns true to its first caller: the actor of a module is made once. Threads: any.
  bool claim() noexcept { return !claimed_->exchange(true); }
  /// Returns whether an autograd context is open in which a method was called (MD-10).
  bool has_open_context();
  /// Lets a gate say from now on which calls may run, and whether the module is in use. @param gate  not null
  void set_gate(std::shared_ptr<detail::ModuleGate> gate) noexcept { gate_ = std::move(gate); }
  /// Returns whether a gate was set: the module is shared, or a copy of a shared one.
  bool has_gate() const noexcept { return gate_ != nullptr; }
  /// Makes a further module of the same class and constructor arguments, with nothing of this one's state.
  /// Errors: unsupported (it was made by a constructor that keeps no arguments). Throws what the constructor throws.
  Result<ServedModule> make_another() const;

  /// Calls the method M of a Net, in the mode of the caller's handle, with the functions before and after it.
  /// Errors: wrong_type (the module is no Net).
  template <class Net, auto M, class... W>
  typename detail::ReturnedBy<M>::type run(Worker& worker, CallInfo& info, bool training, W... arguments) {
    using Returned = typename detail::ReturnedBy<M>::type;
    using Given = typename detail::ReturnedBy<M>::Given;
    using Supplied = typename rpc::CallTypes<decltype(M)>::Split::SuppliedTypes;
    Net* const net = as<Net>();
    if (!net) return refuse<Returned>(wrong_type(rpc::type_key<Net>()));
    const Passage passage(gate_, info);
    if (!passage.entered()) return refuse<Returned>(passage.entered().error());
    begin_call(info, training);
    if (!hooks_.empty()) {
      std::tuple<W&...> values(arguments...);
      run_hooks(&rpc::kFunctionTag<Net, M>, false, &values);
    }
    if constexpr (std::is_same_v<Returned, Given>) {
      return call<M>(Supplied{}, *net, worker, info, arguments...);
    } else if constexpr (std::is_void_v<Given>) {
      call<M>(Supplied{}, *net, worker, info, arguments...);
      return {};
    } else {
      Given result = call<M>(Supplied{}, *net, worker, info, arguments...);
      if (!hooks_.empty()) run_hooks(&rpc::kFunctionTag<Net, M>, true, &result);
      return Returned(std::move(result));
    }
  }

  /// Adds F to what runs before the method M, or takes it away. Adding twice changes nothing. Errors: as run.
  template <class Net, auto M, auto F>
  Result<void> set_before(bool on) {
    return set_before_of<Net, M, F>(on, typename rpc::CallTypes<decltype(M)>::Wire{});
  }
  /// As set_before, for functions that run after the method.
  template <class Net, auto M, auto F>
  Result<void> set_after(bool on) {
    if (!as<Net>()) return wrong_type(rpc::type_key<Net>());
    using Value = typename detail::ReturnedBy<M>::Given;
    set_hook({&rpc::kFunctionTag<Net, M>, &rpc::kFunctionTag<void, F>, true, &detail::call_after<Net, F, Value>}, on);
    return {};
  }

 private:
  ServedModule(const detail::ModuleType& type, std::shared_ptr<void> module)
      : type_(&type), module_(std::move(module)), claimed_(std::make_unique<std::atomic<bool>>(false)) {}

  /// A call on its way through the gate.
  class Passage {
   public:
    Passage(std::shared_ptr<detail::ModuleGate> gate, const CallInfo& info) : gate_(std::move(gate)) {
      if (gate_) entered_ = gate_->enter(info);
    }
    ~Passage() {
      if (gate_ && entered_) gate_->leave();
    }
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    const Result<void>& entered() const noexcept { return entered_; }

   private:
    const std::shared_ptr<detail::ModuleGate> gate_;
    Result<void> entered_;
  };

  struct Hook {
    const char* method;
    const char* function;
    bool after;
    void (*call)(void* module, void* values);
  };

  template <class Net>
  Net* as() const noexcept {
    return type_->key.hash == wire::type_hash<Net>() ? static_cast<Net*>(module_.get()) : nullptr;
  }
  template <class Returned>
  static Returned refuse(const Error& why) {
    if constexpr (rpc::kIsFuture<Returned>) {
      return make_ready_future<typename Returned::value_type>(why);
    } else {
      return why;
    }
  }
  template <class S>
  static S supply(Worker& worker, CallInfo& info) {
    if constexpr (std::is_same_v<S, Worker&>) {
      return worker;
    } else {
      return info;
    }
  }
  template <auto M, class... S, class Net, class... W>
  static decltype(auto) call(rpc::TypeList<S...>, Net& net, [[maybe_unused]] Worker& worker,
                             [[maybe_unused]] CallInfo& info, W&... arguments) {
    return (net.*M)(supply<S>(worker, info)..., std::move(arguments)...);
  }
  template <class Net, auto M, auto F, class... W>
  Result<void> set_before_of(bool on, rpc::TypeList<W...>) {
    if (!as<Net>()) return wrong_type(rpc::type_key<Net>());
    set_hook({&rpc::kFunctionTag<Net, M>, &rpc::kFunctionTag<void, F>, false,
              &detail::call_before<Net, F, std::tuple<W&...>>},
             on);
    return {};
  }
  Error wrong_type(rpc::TypeKey wanted) const;
  /// Notes the context of the call, and sets the module's mode (MD-3).
  void begin_call(const CallInfo& info, bool training);
  void run_hooks(const char* method, bool after, void* values) const;
  void set_hook(const Hook& hook, bool on);

  const detail::ModuleType* type_;
  std::shared_ptr<void> module_;
  std::function<std::shared_ptr<void>()> another_;  // empty: it keeps no arguments
  std::shared_ptr<detail::ModuleGate> gate_;        // null: all calls run
  std::unique_ptr<std::atomic<bool>> claimed_;
  std::optional<bool> training_;
  std::vector<std::weak_ptr<void>> contexts_;
  std::vector<Hook> hooks_;
};

namespace detail {

template <class Net, class... P>
ServedModule make_module(P... arguments) {
  return ServedModule(std::make_shared<Net>(std::move(arguments)...));
}

/// As make_module, of a module that trainers share: keeps the arguments, to make further ones.
template <class Net, class... P>
ServedModule make_shared_module(const P&... arguments) {
  std::function<std::shared_ptr<Net>()> make = [values = std::tuple<P...>(arguments...)] {
    return std::apply([](P... value) { return std::make_shared<Net>(std::move(value)...); }, values);
  };
  std::shared_ptr<Net> first = make();
  return ServedModule(std::move(first), std::move(make));
}

/// The constructor of a Net from P..., as it is registered.
template <class Net, class List>
struct ModuleConstructor;
template <class Net, class... P>
struct ModuleConstructor<Net, rpc::TypeList<P...>> {
  static_assert(std::is_constructible_v<Net, P...>, "the class of the module has no constructor for these types");
  using Types = rpc::TypeList<P...>;
  static constexpr ServedModule (*kMake)(P...) = &make_module<Net, P...>;
  static constexpr bool kCanShare = (std::is_copy_constructible_v<P> && ...);
  static constexpr ServedModule (*kMakeShared)(const P&...) = &make_shared_module<Net, P...>;
};

/// The method M of a Net, as it is registered.
template <class Net, auto M, class List = typename rpc::CallTypes<decltype(M)>::Wire>
struct ModuleMethod;
template <class Net, auto M, class... W>
struct ModuleMethod<Net, M, rpc::TypeList<W...>> {
  static_assert(std::is_base_of_v<typename rpc::CallTypes<decltype(M)>::Traits::Class, Net>,
                "this is not a method of the module's class");
  using Pointer = typename ReturnedBy<M>::type (ServedModule::*)(Worker&, CallInfo&, bool, W...);
  static constexpr Pointer kRun = &ServedModule::run<Net, M, W...>;
};

/// The function F before or after the method M of a Net, as it is registered.
template <class Net, auto M, auto F>
struct ModuleHook {
  using Pointer = Result<void> (ServedModule::*)(bool);
  static constexpr Pointer kBefore = &ServedModule::set_before<Net, M, F>;
  static constexpr Pointer kAfter = &ServedModule::set_after<Net, M, F>;
};

/// Returns "net.new:int,Tensor". @param signature  "caftan::nn::ServedModule(int, Tensor)"
/// @param verb  "new", or "share" for a module that trainers share
std::string module_constructor_name(std::string_view name, std::string_view signature, std::string_view verb = "new");

template <class Net, auto F, class... W>
constexpr bool takes(rpc::TypeList<W...>) {
  return std::is_invocable_v<decltype(F), Net&, W&...>;
}

}  // namespace detail

/// Goes on describing the class Net of modules.
template <class Net>
class ModuleBuilder {
 public:
  ModuleBuilder(Registry& registry, std::string name) : registry_(registry), name_(std::move(name)) {}

  /// Lets peers make a Net from P..., alone or to be shared by trainers; one for each list of parameters. All of them
  /// travel.
  template <class... P>
  ModuleBuilder& constructor() {
    using Wire = rpc::TypeList<std::remove_cvref_t<P>...>;
    using Constructor = detail::ModuleConstructor<Net, Wire>;
    const std::string_view signature = rpc::signature_of<ServedModule, Wire>();
    registry_.add<Constructor::kMake>(detail::module_constructor_name(name_, signature));
    if constexpr (Constructor::kCanShare) {
      registry_.add<Constructor::kMakeShared>(detail::module_constructor_name(name_, signature, "share"));
    }
    return *this;
  }
  /// Lets peers call the method M, which keeps its turn while it waits (MD-2).
  template <auto M>
  ModuleBuilder& method(std::string_view name) {  // no overload, no template
    served().template exclusive<detail::ModuleMethod<Net, M>::kRun>(name);
    return *this;
  }
  /// Lets peers have F run before the method M: `void F(Net&, at::Tensor& x)` for `forward(at::Tensor x)`. F may change
  /// the arguments. It runs for all callers once a handle has added it: RemoteModule::add_before.
  /// Source: torch.nn.Module.register_forward_pre_hook. Difference: for any method, and by function.
  template <auto M, auto F>
  ModuleBuilder& before(std::string_view name) {
    static_assert(detail::takes<Net, F>(typename rpc::CallTypes<decltype(M)>::Wire{}),
                  "a function before a method takes the module and the method's arguments, as references");
    served().template method<detail::ModuleHook<Net, M, F>::kBefore>(name);
    return *this;
  }
  /// Lets peers have F run after the method M: `void F(Net&, at::Tensor& y)`. F may change the result.
  /// Source: torch.nn.Module.register_forward_hook. Difference: for any method that returns a plain value.
  template <auto M, auto F>
  ModuleBuilder& after(std::string_view name) {
    using Given = typename detail::ReturnedBy<M>::Given;
    static_assert(!std::is_void_v<Given> && !rpc::kIsFuture<Given> && !rpc::kIsResult<Given>,
                  "a function runs after a method that returns a plain value: no void, Future or Result");
    static_assert(std::is_invocable_v<decltype(F), Net&, Given&>,
                  "a function after a method takes the module and the method's result, as references");
    served().template method<detail::ModuleHook<Net, M, F>::kAfter>(name);
    return *this;
  }

 private:
  ClassBuilder<ServedModule> served() { return ClassBuilder<ServedModule>(registry_, name_); }

  Registry& registry_;
  std::string name_;
};

/// Registers the class Net of modules as `name`; go on with its constructors and methods. A worker that only calls
/// registers the same as the owner.
/// @param name  of the class, on all workers the same
template <class Net>
ModuleBuilder<Net> add_module(Registry& registry, std::string_view name) {
  return ModuleBuilder<Net>(registry, std::string(name));
}

}  // namespace caftan::nn
