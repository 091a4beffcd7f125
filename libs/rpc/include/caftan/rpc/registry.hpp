/// `Registry`: the functions and classes that peers may use on a worker. What is not registered cannot be called. A
/// value without globals: fill one and give it to the worker, which freezes its copy.
///     registry.add<&add>("math.add", brief);
///     registry.add<Net>("net").constructor<int, int>().method<&Net::forward>("forward").exclusive<&Net::save>("save");
///     registry.add_batched<&choose>("choose", {.max_size = 16, .max_wait = 5ms});
///     registry.add_script("policy", "policy.pt");
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "caftan/base/fnv1a.hpp"
#include "caftan/base/permissions.hpp"
#include "caftan/rpc/batched_call.hpp"
#include "caftan/rpc/extension.hpp"
#include "caftan/rpc/function.hpp"
#include "caftan/rpc/invocation.hpp"
#include "caftan/rpc/signature.hpp"

namespace caftan {

template <class C>
class ClassBuilder;

/// Whether a function or method may block the thread that runs it.
enum class Blocking : std::uint8_t { allowed, never };
/// For `Registry::add`, `ClassBuilder::method` and their like: the function is short and never blocks, so it may run in
/// place on the thread that serves the protocol.
inline constexpr Blocking brief = Blocking::never;

namespace rpc {

class Script;

/// One registered function, constructor or method.
struct FunctionEntry {
  /// What a name stands for.
  enum class Kind : std::uint8_t { function, constructor, method };

  std::string name;
  FunctionKey key;  ///< views into name and static storage
  Kind kind = Kind::function;
  TypeKey object;  ///< of a method: the class it runs on; of a constructor: the class it makes
  TurnMode mode = TurnMode::serial;
  bool brief = false;
  void (*invoke)(Invocation&) = nullptr;
  void (*target)() = nullptr;  ///< a function given at run time
  BatchLimits batch;
  /// Of a batched function: runs it once for several calls; `invoke` lets one call wait for that. Null = not batched.
  void (*invoke_batch)(Caller&, BatchedRequests&) = nullptr;
  std::shared_ptr<const Script> script;  ///< of a method of a script; null else
  std::size_t script_method = 0;         ///< its place in Script::methods
};

/// Tags for each class, and for each of its constructors: their addresses are the keys of the registered names.
template <class C>
inline constexpr char kClassTag = 0;

/// Runs the registered function F.
template <auto F>
void invoke_function(Invocation& in) {
  invoke<typename CallTypes<decltype(F)>::Split>(in, F);
}
/// Runs a function that was given at run time.
template <class Pointer>
void invoke_target(Invocation& in) {
  const auto function = reinterpret_cast<Pointer>(in.entry->target);
  invoke<typename CallTypes<Pointer>::Split>(in, function);
}
/// Runs the method M on the object of the call, which is a C.
template <class C, auto M>
void invoke_method(Invocation& in) {
  C* const object = in.object->as<C>();
  invoke<typename CallTypes<decltype(M)>::Split>(in, [object](auto&&... argument) -> decltype(auto) {
    return (object->*M)(std::forward<decltype(argument)>(argument)...);
  });
}

/// Runs the batched function F.
template <auto F>
void invoke_function_batch(Caller& caller, BatchedRequests& requests) {
  invoke_batch<CallTypes<decltype(F)>>(caller, requests, F);
}
/// Runs the batched method M on the object of the calls, which is a C.
template <class C, auto M>
void invoke_method_batch(Caller& caller, BatchedRequests& requests) {
  C* const object = requests.front()->in.object->as<C>();
  invoke_batch<CallTypes<decltype(M)>>(caller, requests, [object](auto&&... argument) -> decltype(auto) {
    return (object->*M)(std::forward<decltype(argument)>(argument)...);
  });
}

/// Returns the name a constructor is registered under: "net(int, int)".
/// @param signature  "Net(int, int)", @param type  "Net"
std::string constructor_name(std::string_view class_name, std::string_view signature, std::string_view type);

}  // namespace rpc

/// A copy has the same entries. What is registered in the original later, the copy does not have, and vice versa.
/// Threads: one while it is filled; any after freeze().
class Registry {
 public:
  /// Registers the function F (not overloaded, not a lambda) as `name`.
  /// @param blocking  `brief`, or nothing
  template <auto F>
  void add(std::string_view name, Blocking blocking = Blocking::allowed) {  // no overload, no template
    static_assert(!std::is_member_pointer_v<decltype(F)>, "a method is registered with its class: add<Net>(...)");
    static_assert(
        !rpc::CallTypes<decltype(F)>::Split::kBatched,
        "a function that takes a Batch is registered with its limits: add_batched<&f>(name, {.max_size = 16})");
    auto& entry = insert<rpc::CallTypes<decltype(F)>>(name, rpc::FunctionEntry::Kind::function);
    entry.brief = blocking == Blocking::never;
    entry.invoke = &rpc::invoke_function<F>;
    set_tag(&rpc::kFunctionTag<void, F>, entry);
  }

  /// Registers the function F, which takes a Batch, as `name`: calls of it are collected, and one run answers several.
  /// Calls in an autograd context, made with grad mode on, are refused: unsupported.
  template <auto F>
  void add_batched(std::string_view name, BatchLimits limits) {  // no overload, no template
    using Types = rpc::CallTypes<decltype(F)>;
    static_assert(!std::is_member_pointer_v<decltype(F)>, "a method is registered with its class: add<Net>(...)");
    static_assert(Types::Split::kBatched,
                  "a batched function takes a Batch: std::vector<int> choose(const caftan::Batch<at::Tensor>&)");
    auto& entry = insert<Types>(name, rpc::FunctionEntry::Kind::function);
    entry.invoke = &rpc::invoke_later<typename Types::Split>;
    set_batch(entry, limits, &rpc::invoke_function_batch<F>);
    set_tag(&rpc::kFunctionTag<void, F>, entry);
  }

  /// Registers `implementation` (which may be overloaded) under the name and type of `function`.
  template <class Signature>
  void add(const RemoteFunction<Signature>& function, typename RemoteFunction<Signature>::Pointer implementation,
           Blocking blocking = Blocking::allowed) {
    using Pointer = typename RemoteFunction<Signature>::Pointer;
    auto& entry =
        insert<typename RemoteFunction<Signature>::Types>(function.name(), rpc::FunctionEntry::Kind::function);
    entry.brief = blocking == Blocking::never;
    entry.invoke = &rpc::invoke_target<Pointer>;
    entry.target = reinterpret_cast<void (*)()>(implementation);
  }

  /// Registers the class C as `name`; go on with its constructors and methods.
  template <class C>
  ClassBuilder<C> add(std::string_view name);

  /// As add, for a class that is a role of a program: errors about its methods say how a program registers one.
  template <class C>
  ClassBuilder<C> add_role(std::string_view name);

  /// Lets peers call the methods of a TorchScript file, with `rpc_script(worker, "NAME.METHOD", ...)`. The file is read
  /// and checked here: what it calls must be operators that peers may call, and its methods run at the same time, so
  /// they change nothing but values of their own (docs/protocols/script.md). What is wrong is an error of freeze().
  /// @param file  of this machine, as torch.jit.save writes it
  void add_script(std::string_view name, const std::filesystem::path& file);

  /// Lets peers make modules of a TorchScript file here, with `nn::RemoteModule<nn::ScriptModule>(worker, to, NAME)`.
  /// The file is read and checked here, and again for each module; its methods run one at a time and may change their
  /// module. What is wrong is an error of freeze().
  void add_script_module(std::string_view name, const std::filesystem::path& file);

  /// Lets every member of the job call what is registered as `name`, also where a file's [permissions] say nothing of
  /// the caller (docs/protocols/permissions.md, PM-4). A rule of a file about the functions of the caller takes that
  /// back.
  /// @param name  a registered name, or the beginning of several and a `*`; registered before freeze()
  void open(std::string_view name);

  /// Lets peers of the worker do what these rules allow, and nothing else; without rules they may do everything. The
  /// last call counts. Rules: docs/protocols/permissions.md.
  void permit(Permissions permissions);

  /// Registers code for a service of the worker, which says what the names of its extensions begin with.
  void extend(std::string_view name, std::shared_ptr<const rpc::Extension> code);

  /// Ends registration. Errors: invalid_config (a name twice, a bad name, added after freezing, an open name that
  /// nothing has), naming all of them.
  Result<void> freeze();

  /// Returns the entry of a name, null when there is none.
  const rpc::FunctionEntry* find(std::uint64_t name_hash, std::string_view name) const noexcept;
  /// Returns the entry of kFunctionTag<C, F>, null when it is not registered here.
  const rpc::FunctionEntry* find(const char* tag) const noexcept;
  /// Returns the name of class kClassTag<C>, nullopt when it is not registered here.
  std::optional<std::string_view> class_name(const char* tag) const noexcept;
  /// Returns whether `open` was called for the name.
  bool is_open(std::string_view name) const noexcept;
  /// Returns the rules that `permit` has set, null without any.
  const Permissions* permissions() const noexcept { return permissions_.get(); }
  /// Returns whether class kClassTag<C> was registered by add_role.
  bool is_role(const char* tag) const noexcept;
  /// Returns all names, sorted.
  std::vector<std::string_view> names() const;
  /// Returns all entries, sorted by name.
  std::vector<const rpc::FunctionEntry*> entries() const;
  /// Returns the file of the modules of that name, null when there is none.
  const std::filesystem::path* script_module(std::string_view name) const noexcept;
  /// Returns the names of the files of modules, sorted.
  std::vector<std::string_view> script_modules() const;
  /// Returns the extension of that name, null when there is none.
  std::shared_ptr<const rpc::Extension> extension(std::string_view name) const noexcept;
  /// Returns the names of all extensions, sorted.
  std::vector<std::string_view> extensions() const;

 private:
  template <class C>
  friend class ClassBuilder;

  template <class Types>
  rpc::FunctionEntry& insert(std::string_view name, rpc::FunctionEntry::Kind kind) {
    return insert(std::string(name), Types::signature(), Types::signature_hash(), kind);
  }
  rpc::FunctionEntry& insert(std::string name, std::string_view signature, std::uint64_t signature_hash,
                             rpc::FunctionEntry::Kind kind);
  void check_name(std::string_view name);
  void set_batch(rpc::FunctionEntry& entry, BatchLimits limits,
                 void (*invoke_batch)(rpc::Caller&, rpc::BatchedRequests&));
  void set_tag(const char* tag, const rpc::FunctionEntry& entry);
  void set_class(const char* tag, std::string_view name, bool is_role);

  struct ClassEntry {
    std::string name;
    bool is_role = false;
  };

  // Copies share the entries, which nothing changes once they are registered.
  std::unordered_map<std::uint64_t, std::shared_ptr<const rpc::FunctionEntry>> by_name_;
  std::unordered_map<const char*, const rpc::FunctionEntry*> by_tag_;
  std::unordered_map<const char*, ClassEntry> classes_;
  std::map<std::string, std::shared_ptr<const rpc::Extension>, std::less<>> extensions_;
  std::map<std::string, std::filesystem::path, std::less<>> script_modules_;
  std::vector<std::shared_ptr<const rpc::FunctionEntry>> refused_;  // what `add` of a refused entry writes to
  std::vector<std::string> open_;                                   // names and patterns
  std::shared_ptr<const Permissions> permissions_;
  std::vector<std::string> problems_;
  bool frozen_ = false;
};

/// Goes on describing the class C.
template <class C>
class ClassBuilder {
 public:
  ClassBuilder(Registry& registry, std::string name) : registry_(registry), name_(std::move(name)) {}

  /// Lets peers make a C from P... with `remote<C>`; one per list of parameters. A first parameter Worker& or CallInfo&
  /// is supplied.
  /// @param blocking  `brief`, or nothing
  template <class... P>
  ClassBuilder& constructor(Blocking blocking = Blocking::allowed) {
    using Split = rpc::SplitParameters<rpc::TypeList<P...>>;
    constexpr std::string_view signature = rpc::signature_of<C, typename Split::Wire>();
    auto& entry = registry_.insert(rpc::constructor_name(name_, signature, wire::type_name<C>()), signature,
                                   base::fnv1a(signature), rpc::FunctionEntry::Kind::constructor);
    entry.object = rpc::type_key<C>();
    entry.brief = blocking == Blocking::never;
    entry.invoke = &rpc::invoke_constructor<C, Split>;
    return *this;
  }
  /// A method that runs alone on its object, and gives the turn back while it waits.
  template <auto M>
  ClassBuilder& method(std::string_view name, Blocking blocking = Blocking::allowed) {  // no overload, no template
    return insert<M>(name, TurnMode::serial, blocking);
  }
  /// A method that keeps its turn while it waits. A call that its own call chain makes to the object meanwhile answers
  /// would_deadlock.
  template <auto M>
  ClassBuilder& exclusive(std::string_view name, Blocking blocking = Blocking::allowed) {  // no overload, no template
    return insert<M>(name, TurnMode::exclusive, blocking);
  }
  /// A method that may overlap with other concurrent methods of the same object.
  template <auto M>
  ClassBuilder& concurrent(std::string_view name, Blocking blocking = Blocking::allowed) {  // no overload, no template
    return insert<M>(name, TurnMode::concurrent, blocking);
  }
  /// A method that takes a Batch: calls of it on one object are collected, and one run answers several (add_batched).
  /// Waiting for others takes no turn; the run takes it, as `mode` says.
  template <auto M>
  ClassBuilder& batched(std::string_view name, BatchLimits limits,
                        TurnMode mode = TurnMode::serial) {  // no overload, no template
    using Split = typename rpc::CallTypes<decltype(M)>::Split;
    static_assert(Split::kBatched,
                  "a batched method takes a Batch: std::vector<int> choose(const caftan::Batch<at::Tensor>&)");
    auto& entry = insert_entry<M>(name, mode);
    entry.invoke = &rpc::invoke_later<Split>;
    registry_.set_batch(entry, limits, &rpc::invoke_method_batch<C, M>);
    return *this;
  }

 private:
  template <auto M>
  ClassBuilder& insert(std::string_view name, TurnMode mode, Blocking blocking) {
    static_assert(!rpc::CallTypes<decltype(M)>::Split::kBatched,
                  "a method that takes a Batch is registered with its limits: batched<&M>(name, {.max_size = 16})");
    auto& entry = insert_entry<M>(name, mode);
    entry.brief = blocking == Blocking::never;
    entry.invoke = &rpc::invoke_method<C, M>;
    return *this;
  }
  template <auto M>
  rpc::FunctionEntry& insert_entry(std::string_view name, TurnMode mode) {
    using Types = rpc::CallTypes<decltype(M)>;
    static_assert(std::is_base_of_v<typename Types::Traits::Class, C>, "this is not a method of the class");
    auto& entry = registry_.insert<Types>(name_ + "." + std::string(name), rpc::FunctionEntry::Kind::method);
    entry.object = rpc::type_key<C>();
    entry.mode = mode;
    registry_.set_tag(&rpc::kFunctionTag<C, M>, entry);
    return entry;
  }

  Registry& registry_;
  std::string name_;
};

template <class C>
ClassBuilder<C> Registry::add(std::string_view name) {
  check_name(name);
  set_class(&rpc::kClassTag<C>, name, false);
  return ClassBuilder<C>(*this, std::string(name));
}

template <class C>
ClassBuilder<C> Registry::add_role(std::string_view name) {
  check_name(name);
  set_class(&rpc::kClassTag<C>, name, true);
  return ClassBuilder<C>(*this, std::string(name));
}

}  // namespace caftan
