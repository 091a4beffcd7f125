/// The part of an outgoing call that CallSite and RRef share: from typed arguments to a request of the worker. Users
/// start with call_site.hpp.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "caftan/rpc/call_state.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/packing.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/rpc/rref_handle.hpp"

namespace caftan::rpc {

/// The callee, the object and the options of a call.
struct CallTarget {
  std::shared_ptr<Caller> caller;  ///< null = the worker ended
  Result<Peer> peer = Peer();
  CallOptions options;
  std::shared_ptr<RRefHandle> object;  ///< of a method; null for functions
};

/// Fills what does not depend on types: kind, name, target, the time that is left, trace, held objects, grad mode,
/// prologue.
/// @param key  null: no prologue (fetch, op)
/// Errors: shut_down, those of the peer and the reference, bad_arguments (a negative timeout), timeout, cancelled.
Result<void> fill_request(OutRequest& request, const CallTarget& target, wire::FrameKind kind, const FunctionKey* key,
                          std::string_view what);

/// Calls the hook and submits a request that is filled and packed.
CallToken start_call(const CallTarget& target, OutRequest&& request, std::shared_ptr<ReplySink> sink);

/// Sends a request that is filled and packed, and whose result no code wants. The hook does not see it.
/// Errors: as Caller::tell; unsupported (a tensor that an autograd context would have to record).
Result<void> send_tell(const CallTarget& target, OutRequest&& request);

/// Calls the hook and creates.
Result<std::shared_ptr<RRefHandle>> send_creation(const CallTarget& target, OutRequest&& request, TypeKey type);

/// Returns the error for `<&f>` that this worker has no name for; of a role's method with the code that registers one
/// in a program.
/// @param class_tag  kClassTag of the class of which a method is called; of void for a function
/// @param type       the name of that class
/// Precondition: target.caller is not null and target.peer is no error.
Error not_registered_here(const CallTarget& target, const char* class_tag, std::string_view type,
                          std::string_view function, std::string_view signature);

/// Returns the written name of a function or method, for example "add" or "&Net::forward".
template <auto F>
constexpr std::string_view function_name() noexcept {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("F = ") + 4);
  return text.substr(0, text.find_first_of(";]"));
}

/// Returns `key`, the name and signature of a RemoteFunction. Errors: bad_arguments when this worker has registered
/// that name with another signature.
Result<const FunctionKey*> check_key(const CallTarget& target, const FunctionKey& key);

/// Returns the error for a name that stands for other types at the callee (or here) than at the caller.
Error other_signature(const FunctionEntry& entry, std::string_view given);

/// Returns the key under which F is registered at this worker. Errors: shut_down, unknown_function, unknown_worker.
template <auto F, class Class = void>
Result<const FunctionKey*> find_key(const CallTarget& target) {
  if (!target.peer) return target.peer.error();
  if (!target.caller) return Error(Errc::shut_down, "the worker has ended");
  const FunctionEntry* entry = target.caller->registry().find(&kFunctionTag<Class, F>);
  if (!entry) {
    return not_registered_here(target, &kClassTag<Class>, wire::type_name<Class>(), function_name<F>(),
                               CallTypes<decltype(F)>::signature());
  }
  return &entry->key;
}

/// Submits a request that is filled and packed; returns the future of its reply.
template <class Value>
Future<Value> start_call(const CallTarget& target, OutRequest&& request) {
  auto state = std::make_shared<CallState<Value>>(target.caller, *target.peer, request);
  state->set_token(start_call(target, std::move(request), state));
  return Future<Value>(std::move(state));
}

/// Calls the function `key` with arguments converted to P.
template <class Value, class... P, class... A>
Future<Value> start_call(const CallTarget& target, const Result<const FunctionKey*>& key, TypeList<P...> types,
                         const A&... arguments) {
  static_assert(enable_sending<Stored<Value>>,
                "the result of this function cannot travel, since it has no serialize: keep it at the callee with "
                "remote<...>");
  OutRequest request;
  if (!key) return make_ready_future<Value>(key.error());
  const auto kind = target.object ? wire::FrameKind::method : wire::FrameKind::call;
  Result<void> done = fill_request(request, target, kind, *key, (*key)->name);
  if (done) done = pack_arguments(types, request, arguments...);
  if (!done) return make_ready_future<Value>(done.error());
  return start_call<Value>(target, std::move(request));
}

/// Calls the function `key` one way: its result is dropped where it runs.
template <class... P, class... A>
Result<void> start_tell(const CallTarget& target, const Result<const FunctionKey*>& key, TypeList<P...> types,
                        const A&... arguments) {
  OutRequest request;
  if (!key) return key.error();
  const auto kind = target.object ? wire::FrameKind::method : wire::FrameKind::call;
  Result<void> done = fill_request(request, target, kind, *key, (*key)->name);
  if (done) done = pack_arguments(types, request, arguments...);
  return done ? send_tell(target, std::move(request)) : done;
}

/// Asks the peer to run the function `key` and to keep the value; returns the reference to the value.
template <class Value, class... P, class... A>
Result<std::shared_ptr<RRefHandle>> start_creation(const CallTarget& target, const Result<const FunctionKey*>& key,
                                                   TypeList<P...> types, const A&... arguments) {
  OutRequest request;
  if (!key) return key.error();
  Result<void> done = fill_request(request, target, wire::FrameKind::create, *key, (*key)->name);
  if (done) done = pack_arguments(types, request, arguments...);
  if (!done) return done.error();
  return send_creation(target, std::move(request), type_key<Stored<Value>>());
}

}  // namespace caftan::rpc
