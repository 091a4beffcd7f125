/// `Invocation`: one arrived call on its way through a registered function: where its result goes, and the worker's
/// services that it may use. The templates here turn a function's types into the code that decodes the arguments, runs
/// the function and completes the call.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "caftan/rpc/call_hook.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/packing.hpp"
#include "caftan/rpc/signature.hpp"
#include "caftan/rpc/user_code.hpp"

namespace caftan::rpc {

class Batches;
struct FunctionEntry;
class NamedObjects;

/// Where a result goes: back to the caller, or into a new hosted object. Move-only, used once.
class Completion {
 public:
  /// Gets the object that a creation makes.
  using Creation = Promise<std::shared_ptr<HostedObject>>;
  explicit Completion(Responder responder) : responder_(std::move(responder)) {}
  Completion(Creation creation, RRefId id) : creation_(std::move(creation)), id_(id) {}

  /// Returns whether the result becomes a new hosted object.
  bool creates() const noexcept { return creation_.has_value(); }
  /// Returns whether the result is to be encoded for a reply. Precondition: not creates().
  bool wants_result() const noexcept { return responder_.wants_result(); }
  /// Precondition: creates().
  RRefId id() const noexcept { return id_; }
  /// Ends the call with an error, whether a reply or a new object is expected.
  void fail(Error error);
  /// Sends the reply, which passes the call hook first. Precondition: not creates().
  void reply(Caller& caller, const CallInfo& info, Result<OutReply>&& reply);
  /// Precondition: creates().
  void create(Result<std::shared_ptr<HostedObject>> object) { creation_->set(std::move(object)); }

 private:
  Responder responder_;
  std::optional<Creation> creation_;
  RRefId id_;
};

/// Passed by reference while user code runs; moved only where the result comes later.
struct Invocation {
  const FunctionEntry* entry;
  Caller* caller;  ///< the worker; once user code has returned, reach it through `alive` only
  std::weak_ptr<Caller> alive;
  CallInfo info;
  InPayload payload;  ///< body without the prologue
  std::shared_ptr<HostedObject> object;
  Completion completion;
  NamedObjects* names = nullptr;  ///< set where a constructor is to make the object `object_name`
  std::string object_name{};
  Batches* batches = nullptr;  ///< set where the function is batched: the call waits in these batches for its run

  /// Returns the registered name of what runs.
  std::string_view name() const noexcept { return info.function; }
};

/// Makes a hosted object of the outcome of a call, and completes the creation with it.
template <class T>
void create(Caller& caller, Invocation& in, Result<T> outcome) {
  if (!outcome) return in.completion.fail(outcome.error().at(caller.name()));
  in.completion.create(run_user_code(caller.name(), in.name(), [&] {
    if constexpr (std::is_void_v<T>) {
      return make_hosted<std::monostate>(in.completion.id(), caller.executor());
    } else {
      std::shared_ptr<Strand> strand = in.object ? in.object->shared_strand() : nullptr;
      return make_hosted_part<T>(in.completion.id(), caller.executor(), std::move(strand), *std::move(outcome));
    }
  }));
}

/// Encodes the outcome of a call. The outcome itself is gone on return, so that any further reference to a tensor's
/// memory belongs to code that may change the tensor.
template <class T>
Result<OutReply> take_reply(Caller& caller, const Invocation& in, Result<T> outcome) {
  if (!outcome) return outcome.error().at(caller.name());
  if (!in.completion.wants_result()) return OutReply();
  Result<OutReply> reply = [&] {
    if constexpr (std::is_void_v<T>) {
      return encode_reply(std::monostate());
    } else {
      return encode_reply<T>(*outcome);
    }
  }();
  if (reply) reply->of_object = in.object != nullptr;
  return reply;
}

/// Sends or hosts the outcome of a call; of a method, on the strand of its object.
template <class T>
void complete(Caller& caller, Invocation& in, Result<T> outcome) {
  in.payload.drop();
  if (in.completion.creates()) return create(caller, in, std::move(outcome));
  // In a statement of its own: the outcome has to be destroyed before the reply leaves.
  Result<OutReply> reply = take_reply(caller, in, std::move(outcome));
  in.completion.reply(caller, in.info, std::move(reply));
}

/// Returns the error with which the future of an asynchronous function ended; the error of a dropped promise gets the
/// function's name.
Error with_function(const Error& error, std::string_view function);

/// Sends what a method's future became. Tensors leave their object on its strand, as those of other methods do.
void reply_on_strand(std::unique_ptr<Invocation> in, Result<OutReply> reply);

template <class T>
void complete(Caller& caller, Invocation& in, Result<Future<T>> outcome) {
  if (!outcome) return in.completion.fail(outcome.error().at(caller.name()));
  in.payload.drop();
  // The object may hold the promise of this future, and with it this continuation. While the call is under way the
  // reference keeps the object, not the call.
  const std::weak_ptr<HostedObject> object = std::exchange(in.object, nullptr);
  std::move(*outcome)
      .then([in = std::make_unique<Invocation>(std::move(in)), object](Result<T> result) mutable {
        const std::shared_ptr<Caller> alive = in->alive.lock();
        if (!alive) return in->completion.fail(Error(Errc::shut_down, "the worker ended before the result was there"));
        if (!result) return in->completion.fail(with_function(result.error(), in->name()).at(alive->name()));
        in->object = object.lock();
        if (in->completion.creates()) return create(*alive, *in, std::move(result));
        Result<OutReply> reply = take_reply(*alive, *in, std::move(result));
        if (in->object && reply && !reply->tensors.empty()) return reply_on_strand(std::move(in), std::move(reply));
        in->completion.reply(*alive, in->info, std::move(reply));
      })
      .forget();
}

namespace detail {

template <class S>
S supply(Invocation& in) {
  if constexpr (std::is_same_v<S, Worker&>) {
    return in.caller->worker();
  } else {
    return in.info;
  }
}

/// Calls `function(supplied..., arguments...)`.
template <class... S>
struct Supply {
  template <class Tuple, class F>
  static decltype(auto) call(Invocation& in, Tuple& arguments, F& function) {
    return std::apply(
        [&](auto&... argument) -> decltype(auto) { return function(supply<S>(in)..., std::move(argument)...); },
        arguments);
  }
};
template <class List>
struct SupplyOf;
template <class... S>
struct SupplyOf<TypeList<S...>> {
  using type = Supply<S...>;
};

}  // namespace detail

/// Decodes the arguments and calls `function`. The arguments are gone when it returns.
template <class Split, class F>
auto call_decoded(Invocation& in, F& function) {
  typename Split::WireTuple arguments;
  using Supply = typename detail::SupplyOf<typename Split::SuppliedTypes>::type;
  const auto call = [&]() -> decltype(auto) { return Supply::call(in, arguments, function); };
  using Outcome = decltype(run_user_code(in.caller->name(), in.name(), call));
  const Result<void> decoded = unpack_arguments(in.payload, in.payload.body, in.name(), arguments);
  if (!decoded) return Outcome(decoded.error());
  return run_user_code(in.caller->name(), in.name(), call);
}

/// Decodes the arguments, calls `function`, and replies with its result.
/// @tparam Split  SplitParameters: which parameters come from the frame, and which this worker supplies
template <class Split, class F>
void invoke(Invocation& in, F function) {
  complete(*in.caller, in, call_decoded<Split>(in, function));
}

/// Runs one construction. Precondition: in.completion.creates().
template <class C, class Split>
void invoke_constructor(Invocation& in) {
  Caller& caller = *in.caller;
  typename Split::WireTuple arguments;
  Result<void> decoded = unpack_arguments(in.payload, in.payload.body, in.name(), arguments);
  if (!decoded) return in.completion.fail(decoded.error().at(caller.name()));
  using Supply = typename detail::SupplyOf<typename Split::SuppliedTypes>::type;
  const auto construct = [&](auto&&... argument) {
    return construct_hosted<C>(in.completion.id(), caller.executor(), std::forward<decltype(argument)>(argument)...);
  };
  in.completion.create(run_user_code(caller.name(), in.name(), [&] { return Supply::call(in, arguments, construct); }));
}

}  // namespace caftan::rpc
