/// `RRef<T>`: a reference to a value that lives on another worker (or on this one). It travels in arguments and
/// results, and keeps the value alive as long as any copy anywhere exists. Made by `worker.remote<...>(...)`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "caftan/rpc/call.hpp"

namespace caftan {

template <class T>
class RRef;

namespace rpc {

/// Errors: bad_arguments (an empty RRef), shut_down, what the handle failed with.
CallTarget target_of(const std::shared_ptr<RRefHandle>& handle, const CallOptions& options);

/// Returns when a wait through `handle` that begins now has to be over.
/// Errors: bad_arguments (an empty RRef, a negative timeout), shut_down.
Result<base::TimePoint> wait_deadline(const std::shared_ptr<RRefHandle>& handle, const CallOptions& options);

/// Waits for the owner's value at most as long as `options` allow.
/// Errors: those of wait_deadline, not_owner, those of the creation, timeout.
Result<std::shared_ptr<HostedObject>> wait_for_local(const std::shared_ptr<RRefHandle>& handle,
                                                     const CallOptions& options);

/// As wait_for_local, until `deadline`. Precondition: `handle` is not null.
Result<std::shared_ptr<HostedObject>> wait_for_local_until(const std::shared_ptr<RRefHandle>& handle,
                                                           base::TimePoint deadline);

/// Waits for `future` until `deadline`. Errors: timeout, overloaded, would_deadlock (inside a brief function).
Result<void> wait_until(FutureCore& future, Caller& caller, base::TimePoint deadline, std::string_view what);

/// Returns would_deadlock when the running call chain holds `object` elsewhere.
Result<void> check_not_held(const HostedObject& object, const HeldObjects& held);

}  // namespace rpc

/// The calls through a reference, with their options. Copies share the reference.
/// Threads: any.
template <class T>
class RRefCalls {
 public:
  /// What is stored for T: T, or std::monostate for void.
  using Value = rpc::Stored<T>;

  RRefCalls() = default;
  RRefCalls(std::shared_ptr<rpc::RRefHandle> handle, CallOptions options)
      : handle_(std::move(handle)), options_(options) {}

  /// Returns the value, fetched from its owner.
  ///
  /// Waits until the owner has it; on the owner itself the value is copied, tensors in it are shared. Each call fetches
  /// anew. CPU tensors stay on the CPU.
  /// Errors: timeout, peer_down, rref_deleted, remote_exception (the creating call failed), unsupported (T cannot be
  ///         serialized). A value that is not ready yet is not an error.
  /// Threads: any thread that is not running an event-based actor. Blocks.
  /// Source: torch.distributed.rpc.RRef.to_here. Difference: the timeout holds on the owner too.
  T to_here() const { return try_to_here().value(); }
  /// As to_here, without throwing.
  Result<T> try_to_here() const {
    if (handle_ && handle_->is_owner()) return copy_local();
    return fetch().result();
  }
  /// As to_here, without waiting.
  Future<T> fetch() const {
    static_assert(
        rpc::enable_sending<Value>,
        "the value of this reference cannot travel, since it has no serialize: call its methods at its owner, "
        "or use local_value there");
    rpc::OutRequest request;
    const rpc::CallTarget target = rpc::target_of(handle_, options_);
    const Result<void> begun = rpc::fill_request(request, target, wire::FrameKind::fetch, nullptr, "to_here");
    if (!begun) return make_ready_future<T>(begun.error());
    return rpc::start_call<T>(target, std::move(request));
  }

  /// Returns the value itself, on its owner; waits until it is there. Methods may run on it at the same time: use it on
  /// the object's strand, or where no method is called.
  /// Errors: not_owner (naming the ids, this worker and the owner), timeout, those of the creation.
  /// Source: torch.distributed.rpc.RRef.local_value.
  std::shared_ptr<Value> local_value() const { return try_local_value().value(); }
  Result<std::shared_ptr<Value>> try_local_value() const {
    Result<std::shared_ptr<rpc::HostedObject>> object = rpc::wait_for_local(handle_, options_);
    if (!object) return object.error();
    Value* const value = (*object)->template as<Value>();
    if (!value) return Error(Errc::wrong_type, "the value is a " + std::string((*object)->type().key.name));
    return std::shared_ptr<Value>(*std::move(object), value);
  }

  /// Calls the registered method M on the value, at its owner, and waits. M<&Net::forward>(x...).
  /// Errors (thrown): as CallSite::rpc_sync, and rref_deleted, would_deadlock.
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
    using Types = MethodTypes<M>;
    const rpc::CallTarget target = rpc::target_of(handle_, options_);
    return rpc::start_call<typename Types::Value>(target, rpc::find_key<M, T>(target), typename Types::Wire{},
                                                  arguments...);
  }
  /// Calls M one way, as CallSite::tell: no reply comes. One-way calls begin in order, and later calls of methods of
  /// the same object, of this worker, begin behind them.
  template <auto M, class... A>
  void tell(const A&... arguments) const {  // no overload, no template
    try_tell<M>(arguments...).value();
  }
  template <auto M, class... A>
  Result<void> try_tell(const A&... arguments) const {  // no overload, no template
    const rpc::CallTarget target = rpc::target_of(handle_, options_);
    return rpc::start_tell(target, rpc::find_key<M, T>(target), typename MethodTypes<M>::Wire{}, arguments...);
  }
  /// Calls M and keeps its result at the owner. It does not wait for this reference's value: calls can be chained
  /// without a round trip between them.
  template <auto M, class... A>
  auto remote(const A&... arguments) const {  // no overload, no template
    return try_remote<M>(arguments...).value();
  }
  template <auto M, class... A>
  auto try_remote(const A&... arguments) const {  // no overload, no template
    using Types = MethodTypes<M>;
    using Made = RRef<typename Types::Value>;
    const rpc::CallTarget target = rpc::target_of(handle_, options_);
    auto made = rpc::start_creation<typename Types::Value>(target, rpc::find_key<M, T>(target), typename Types::Wire{},
                                                           arguments...);
    return made ? Result<Made>(Made(*std::move(made))) : Result<Made>(made.error());
  }

 protected:
  std::shared_ptr<rpc::RRefHandle> handle_;

 private:
  template <auto M>
  struct MethodTypes : rpc::CallTypes<decltype(M)> {
    static_assert(std::is_base_of_v<typename rpc::CallTypes<decltype(M)>::Traits::Class, T>,
                  "this is not a method of the referenced type");
  };

  Result<T> copy_local() const {
    const Result<base::TimePoint> deadline = rpc::wait_deadline(handle_, options_);  // of both waits
    if (!deadline) return deadline.error();
    Result<std::shared_ptr<rpc::HostedObject>> object = rpc::wait_for_local_until(handle_, *deadline);
    if (!object) return object.error();
    if constexpr (std::is_void_v<T>) {
      return {};
    } else if constexpr (!std::is_copy_constructible_v<T>) {
      return Error(Errc::unsupported, "the value cannot be copied; use local_value");
    } else {
      Value* const value = (*object)->template as<Value>();
      if (!value) return Error(Errc::wrong_type, "the value is a " + std::string((*object)->type().key.name));
      rpc::Strand& strand = (*object)->strand();
      if (strand.is_held_here()) return *value;
      const std::shared_ptr<rpc::Caller> caller = handle_->caller();
      if (!caller) return Error(Errc::shut_down, "the worker has ended");
      const Ambient* const ambient = Ambient::current();
      const Result<void> free = rpc::check_not_held(**object, ambient ? ambient->held : nullptr);
      if (!free) return free.error();
      Promise<T> promise(caller);
      Future<T> copied = promise.future();
      strand.run([value, keep = *object, promise = std::move(promise)]() mutable {
        promise.set(rpc::run_user_code({}, "copy of the value", [value]() -> const T& { return *value; }));
      });
      const Result<void> waited = rpc::wait_until(*copied.state(), *caller, *deadline, "to_here");
      if (!waited) return waited.error();
      return std::move(copied).outcome();
    }
  }

  CallOptions options_;
};

/// A value type: copies share one reference. Default-made it is empty; its calls then answer bad_arguments.
template <class T>
class RRef : public RRefCalls<T> {
 public:
  using value_type = T;
  RRef() = default;
  explicit RRef(std::shared_ptr<rpc::RRefHandle> handle) : RRefCalls<T>(std::move(handle), {}) {}

  explicit operator bool() const noexcept { return this->handle_ != nullptr; }
  /// Returns the same reference with options for its calls: `rref.with({.timeout = 5s}).to_here()`.
  RRefCalls<T> with(CallOptions options) const { return RRefCalls<T>(this->handle_, options); }

  // Precondition of all methods below: the reference is not empty.
  /// Returns the worker that has the value.
  Peer owner() const { return this->handle_->owner(); }
  /// Returns the name of the worker that has the value.
  const std::string& owner_name() const { return this->handle_->owner().name(); }
  /// Returns whether this worker has the value.
  bool is_owner() const noexcept { return this->handle_->is_owner(); }
  /// Returns whether the owner has confirmed that it counts this reference: for the one that `remote` returned, when
  /// the function there has ended without error. Always true on the owner.
  /// Source: torch.distributed.rpc.RRef.confirmed_by_owner.
  bool confirmed_by_owner() const noexcept { return this->handle_->confirmed_by_owner(); }
  /// Returns why the value will never be there, if that is known: at the owner and at the creator, when the creation
  /// failed or took too long.
  std::optional<Error> failed() const { return this->handle_->failed(); }
  /// Returns a future that is ready when the value has been made: waits for a creation without fetching anything.
  /// Errors: those of the creation (remote_exception, timeout, peer_down and the like), shut_down; unsupported for a
  /// reference that came from another worker: only the creator and the owner learn how the creation ended.
  /// Threads: any.
  /// Source: torch.distributed.rpc.RRef._get_future. Difference: also at the owner.
  Future<void> created() const { return this->handle_->created(); }
  /// Returns the id of the value, the same at every worker.
  RRefId id() const noexcept { return this->handle_->rref(); }
  /// Returns the handle of this reference; null when the reference is empty.
  const std::shared_ptr<rpc::RRefHandle>& handle() const noexcept { return this->handle_; }
};

namespace rpc {
/// Writes a reference as an index into the manifest of its frame. Throws EncodeError outside of calls.
void save_rref(wire::OutArchive& to, const std::shared_ptr<RRefHandle>& handle);
/// Throws DecodeError.
void load_rref(wire::InArchive& from, std::shared_ptr<RRefHandle>& handle);
/// Throws DecodeError unless the reference is to a value of `type`.
void load_rref(wire::InArchive& from, std::shared_ptr<RRefHandle>& handle, TypeKey type);
}  // namespace rpc

namespace wire {
/// The wire form of a reference: its index in the frame's manifest plus one; 0 = empty. Outside of calls: EncodeError,
/// unsupported.
template <class T>
struct Codec<RRef<T>> {
  static void save(OutArchive& to, const RRef<T>& rref) { rpc::save_rref(to, rref.handle()); }
  static void load(InArchive& from, RRef<T>& rref) {
    std::shared_ptr<rpc::RRefHandle> handle;
    rpc::load_rref(from, handle, rpc::type_key<rpc::Stored<T>>());
    rref = RRef<T>(std::move(handle));
  }
};
}  // namespace wire

}  // namespace caftan
