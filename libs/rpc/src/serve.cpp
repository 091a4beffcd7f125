#include "caftan/rpc/internal/serve.hpp"

#include <c10/core/GradMode.h>

#include <atomic>
#include <optional>
#include <string>

#include "caftan/base/internal/rounded_duration.hpp"
#include "caftan/rpc/call.hpp"
#include "caftan/rpc/named_object.hpp"
#include "caftan/rpc/operators.hpp"
#include "caftan/rpc/rref.hpp"
#include "script_key.hpp"
#include "serving.hpp"

namespace caftan::rpc {

namespace {

Ambient ambient_of(const CallInfo& info) {
  Ambient ambient;
  ambient.autograd_context = info.autograd_context;
  ambient.held = info.held;
  ambient.cancel = info.cancel;
  ambient.deadline = info.deadline;
  ambient.trace = info.trace;
  ambient.depth = info.depth + 1;
  ambient.order.key = info.order_key;
  ambient.grad_mode = info.grad_mode;
  if (const Ambient* const around = Ambient::current()) ambient.turn = around->turn;
  return ambient;
}

/// Returns why a call is refused that got its runner and its turn after its deadline: how much time it had, and what
/// sets that.
Error too_late(const Caller& caller, const CallInfo& info, base::TimePoint now) {
  std::string text = std::string(info.function) + ": its time was over before it ran";
  if (info.gate) {
    text += ": " + base::format_rounded(info.deadline - info.gate->arrived()) +
            " were left when it arrived, and it waited " + base::format_rounded(now - info.gate->arrived()) +
            " for a runner or its turn";
  }
  return {Errc::timeout, caller.name(),
          text + "; its caller sets the time (CallOptions::timeout, else cluster.rpc_timeout)"};
}

/// Returns the time of the executor's clock, which only calls with a deadline need.
base::TimePoint time_of(Caller& caller, const CallInfo& info) {
  return info.deadline == base::kNever ? base::TimePoint{} : caller.executor().clock().now();
}

Result<void> check_wanted_at(const Caller& caller, const CallInfo& info, base::TimePoint now) {
  if (info.is_cancelled()) return Error(Errc::cancelled, caller.name(), "the caller gave up before it ran");
  if (info.deadline != base::kNever && now >= info.deadline) return too_late(caller, info, now);
  return {};
}

/// Errors: unsupported for a call whose results would be recorded: a run records one graph for all its calls (BT-10).
Result<void> check_not_recorded(const CallInfo& info) {
  if (!info.grad_mode || !info.autograd_context.lock()) return {};
  return Error(Errc::unsupported,
               std::string(info.function) +
                   " is batched: one run answers calls of several callers, so it records for no autograd context. Call "
                   "it outside of the context or under at::NoGradGuard, or register a function that is not batched");
}

/// Returns what registers a module's constructor of the name "net.new:int,Tensor" or "net.share:int,Tensor"; empty for
/// any other name.
std::string module_advice(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return {};
  std::string_view module = name.substr(0, colon);
  if (!module.ends_with(".new") && !module.ends_with(".share")) return {};
  module = module.substr(0, module.rfind('.'));
  std::string types;
  for (const char c : name.substr(colon + 1)) types += c == ',' ? ", " : std::string(1, c);
  return "the owner of a module registers the class of the module as its users do, nn::add_module<Net>(registry, \"" +
         std::string(module) + "\").constructor<" + types + ">() with the class for Net";
}

Error unknown_function(const Registry& registry, const FunctionKey& key) {
  if (key.signature_hash == ScriptTypes::signature_hash()) return no_script(registry, key.name);
  const std::string text(key.name);
  if (const std::string advice = module_advice(key.name); !advice.empty()) {
    return Error(Errc::unknown_function, "\"" + text + "\" is not registered: " + advice);
  }
  return Error(Errc::unknown_function,
               "\"" + text + "\" is not registered; at the callee, registry.add<&f>(\"" + text + "\") would");
}

Result<void> check_entry(const FunctionEntry& entry, const FunctionKey& key, const HostedObject* object, bool creates) {
  if (entry.key.signature_hash != key.signature_hash) {
    return other_signature(entry, key.signature);
  }
  const bool is_method = entry.kind == FunctionEntry::Kind::method;
  if (is_method && !object) return Error(Errc::bad_arguments, entry.name + " is a method: call it on an RRef");
  if (!is_method && object) return Error(Errc::bad_arguments, entry.name + " is not a method");
  if (entry.kind == FunctionEntry::Kind::constructor && !creates) {
    return Error(Errc::bad_arguments, entry.name + " is a constructor: call it with remote<Class>");
  }
  if (object && object->type().key.hash != entry.object.hash) {
    return Error(Errc::wrong_type, entry.name + " is a method of " + std::string(entry.object.name) +
                                       ", the object is a " + std::string(object->type().key.name));
  }
  return {};
}

/// Calls the hook, then `run` under the Ambient of the call. Returns what `run` returned, or the error of the hook.
template <class Run>
auto run_operation(Caller& caller, InPayload& payload, CallInfo& info, Run run) -> decltype(run()) {
  if (CallHook* const hook = caller.hook()) {
    const Result<void> received = hook->on_receive(payload, info);
    if (!received) return received.error().at(caller.name());
  }
  const std::shared_ptr<void> running = std::exchange(info.running, nullptr);
  Ambient ambient = ambient_of(info);
  const AmbientSwap swap(&ambient);
  return run();
}

/// Returns whether the call has to wait until its caller has read more replies (SE-35). Then it comes back to `again`.
template <class In>
bool held_back(std::unique_ptr<In>& in, const void* order, void (*again)(std::unique_ptr<In>)) {
  if (!in->info.gate || !in->info.gate->may_hold_back()) return false;
  const std::shared_ptr<BeginGate> gate = in->info.gate;
  return gate->hold_back(order,
                         [&] { return base::Task([in = std::move(in), again]() mutable { again(std::move(in)); }); });
}

/// A request for a named object whose reply goes back to the caller.
class NamedRequest final : public NamedObjects::Request {
 public:
  NamedRequest(std::weak_ptr<Caller> alive, CallInfo info, Completion completion)
      : alive_(std::move(alive)), info_(std::move(info)), completion_(std::move(completion)) {}

  void answer(const Result<std::shared_ptr<RRefHandle>>& object) override {
    const std::shared_ptr<Caller> alive = alive_.lock();
    if (!alive) return completion_.fail(Error(Errc::shut_down, "the worker ended before the object was there"));
    if (!object) return completion_.fail(object.error().at(alive->name()));
    completion_.reply(*alive, info_, encode_reply(AnyRRef{*object}));
  }

 private:
  const std::weak_ptr<Caller> alive_;
  const CallInfo info_;
  Completion completion_;
};

/// Finds the object of that name. If another request makes the object now, waits for that; if there is no such object,
/// makes it here.
void find_or_construct(Invocation& in) {
  const std::shared_ptr<Caller> alive = in.alive.lock();
  if (!alive) return in.completion.fail(Error(Errc::shut_down, "the worker has ended"));
  std::unique_ptr<NamedObjects::Request> request =
      in.names->ask(in.object_name, {in.entry->object.name, in.entry->object.hash},
                    std::make_unique<NamedRequest>(in.alive, in.info, std::move(in.completion)));
  if (!request) return;
  Completion::Creation creation(in.alive);
  Future<std::shared_ptr<HostedObject>> made = creation.future();
  in.completion = Completion(std::move(creation), alive->make_rref_id());
  in.entry->invoke(in);  // returns after the constructor has ended
  Result<std::shared_ptr<RRefHandle>> handle = Error();
  if (auto object = std::move(made).outcome()) {
    handle = alive->create_local(*std::move(object));
  } else {
    handle = object.error();
  }
  in.names->made(in.object_name, handle);
  request->answer(handle);
}

void run_invocation(Invocation& in) {
  Result<void> wanted = in.batches ? check_wanted(*in.caller, in.info) : begin_served(*in.caller, in.info);
  if (CallHook* const hook = in.caller->hook(); hook && wanted) wanted = hook->on_receive(in.payload, in.info);
  if (wanted && in.batches) wanted = check_not_recorded(in.info);
  if (!wanted) return in.completion.fail(wanted.error().at(in.caller->name()));
  const std::shared_ptr<void> running = std::exchange(in.info.running, nullptr);
  Ambient ambient = ambient_of(in.info);
  std::optional<Hold> hold;
  if (in.entry->mode == TurnMode::exclusive && !in.batches) hold.emplace(ambient, *in.object);
  if (in.entry->brief) ambient.brief = &in.entry->name;
  const AmbientSwap swap(&ambient);
  if (in.names) return find_or_construct(in);
  in.entry->invoke(in);
}

/// Runs a function, or lets a call of a batched method wait: those of one object begin to wait in order.
void run_free(std::unique_ptr<Invocation> in) {
  const void* const order = in->object.get();
  if (!held_back(in, order, run_free)) run_invocation(*in);
}

void run_in_turn(std::unique_ptr<Invocation> in) {
  const std::shared_ptr<HostedObject> keep =
      in->object;  // keeps the object, and with it the strand, until this job has ended
  const TurnMode mode = in->entry->mode;
  keep->strand().run(
      [keep, alive = in->caller->shared_from_this(), in = std::move(in)]() mutable {
        if (!held_back(in, &keep->strand(), run_in_turn)) run_invocation(*in);
      },
      mode);
}

struct OperatorCall {
  std::shared_ptr<Caller> alive;
  InPayload payload;
  CallInfo info;
  Completion completion;
};

void run_operator_call(Caller& caller, InPayload& payload, CallInfo& info, Completion& completion) {
  info.function = "operator";
  const Result<void> wanted = begin_served(caller, info);
  if (!wanted) return completion.fail(wanted.error());
  Result<OutReply> reply = run_operation(caller, payload, info, [&]() -> Result<OutReply> {
    const Result<OperatorValues> results = run_operator(payload);
    if (!results) return results.error();
    return encode_reply(*results);
  });
  completion.reply(caller, info, std::move(reply));
}

void run_held_operator(std::unique_ptr<OperatorCall> in) {
  if (held_back(in, nullptr, run_held_operator)) return;
  run_operator_call(*in->alive, in->payload, in->info, in->completion);
}

struct Fetch {
  std::shared_ptr<Caller> alive;
  std::shared_ptr<HostedObject> object;
  InPayload payload;  // the hook reads what the payload says; a fetch has no arguments
  CallInfo info;
  Completion completion;
};

void run_fetch(Fetch& in) {
  const Result<void> wanted = begin_served(*in.alive, in.info);
  if (!wanted) return in.completion.fail(wanted.error());
  Result<OutReply> reply = run_operation(*in.alive, in.payload, in.info, [&] {
    Result<OutReply> encoded = in.object->type().encode(*in.object);
    if (encoded) encoded->of_object = true;
    return encoded;
  });
  in.completion.reply(*in.alive, in.info, std::move(reply));
}

void fetch_in_turn(std::unique_ptr<Fetch> in) {
  const std::shared_ptr<HostedObject> keep = in->object;
  keep->strand().run([keep, in = std::move(in)]() mutable {
    if (!held_back(in, &keep->strand(), fetch_in_turn)) run_fetch(*in);
  });
}

}  // namespace

Result<void> check_wanted(Caller& caller, const CallInfo& info) {
  return check_wanted_at(caller, info, time_of(caller, info));
}

Result<void> begin_served(Caller& caller, const CallInfo& info) {
  const base::TimePoint now = time_of(caller, info);
  if (info.gate && info.deadline != base::kNever) info.gate->begins(info.function, now);
  return check_wanted_at(caller, info, now);
}

Hold::Hold(Ambient& ambient, const HostedObject& object) : over_(std::make_shared<std::atomic<bool>>(false)) {
  ambient.held = with_held(ambient.held, {object.shared_strand()->object(), object.name(), over_});
}

void Completion::fail(Error error) {
  // An error that a continuation threw on behalf of a caller at another worker (CALL-4).
  if (error.code() == Errc::user_error && error.kind().empty()) error = error.with_code(Errc::remote_exception);
  if (creation_) {
    creation_->set(std::move(error));
  } else {
    responder_.fail(std::move(error));
  }
}

void Completion::reply(Caller& caller, const CallInfo& info, Result<OutReply>&& reply) {
  if (!reply) return fail(reply.error().at(caller.name()));
  if (CallHook* const hook = caller.hook()) {
    std::optional<c10::AutoGradMode> of_call;  // this code may run after the called code and then has another grad mode
    if (!reply->tensors.empty()) of_call.emplace(info.grad_mode);
    hook->on_reply(info, *reply);
  }
  responder_.answer(std::move(reply));
}

Error with_function(const Error& error, std::string_view function) {
  if (error.code() != Errc::broken_promise || !error.worker().empty()) return error;
  return Error(Errc::broken_promise, std::string(function) + ": " + error.text());
}

void reply_on_strand(std::unique_ptr<Invocation> in, Result<OutReply> reply) {
  const TurnMode mode = in->entry->mode == TurnMode::concurrent ? TurnMode::concurrent : TurnMode::serial;
  const std::shared_ptr<HostedObject> keep =
      in->object;  // keeps the object, and with it the strand, until this job has ended
  keep->strand().run(
      [keep, in = std::move(in), reply = std::move(reply)]() mutable {
        const std::shared_ptr<Caller> alive = in->alive.lock();
        if (!alive) return in->completion.fail(Error(Errc::shut_down, "the worker ended before the result was sent"));
        in->completion.reply(*alive, in->info, std::move(reply));
      },
      mode);
}

Dispatcher::Sought Dispatcher::look_up(wire::FrameKind kind, wire::ByteView body) const noexcept {
  if (kind != wire::FrameKind::call && kind != wire::FrameKind::method && kind != wire::FrameKind::create) return {};
  if (kind == wire::FrameKind::create && is_operator_creation(body)) return {};
  const Result<FunctionKey> key = read_prologue(body);
  if (!key) return {.brief = true};
  if (is_get_or_create(*key)) return {};
  const FunctionEntry* const entry = caller_.registry().find(key->name_hash, key->name);
  return {.entry = entry, .brief = !entry || entry->brief};
}

void Dispatcher::start(std::shared_ptr<HostedObject> object, InPayload&& payload, CallInfo&& info,
                       Completion&& completion) {
  Result<FunctionKey> key = read_prologue(payload.body);
  std::string object_name;
  const bool has_name = key && is_get_or_create(*key) && !object && !completion.creates();
  if (has_name) {
    Result<std::string> name = read_object_name(payload.body);
    if (!name) return completion.fail(name.error().at(caller_.name()));
    object_name = *std::move(name);
    key = read_prologue(payload.body);
  }
  if (!key) return completion.fail(key.error().at(caller_.name()));
  const FunctionEntry* entry = std::exchange(payload.entry, nullptr);
  if (!entry) entry = caller_.registry().find(key->name_hash, key->name);
  if (!entry) return completion.fail(unknown_function(caller_.registry(), *key).at(caller_.name()));
  Result<void> allowed = check_entry(*entry, *key, object.get(), completion.creates() || has_name);
  if (allowed && has_name && entry->kind != FunctionEntry::Kind::constructor) {
    allowed = Error(Errc::bad_arguments, entry->name + " is no constructor: only these make objects with names");
  }
  if (allowed && permissions_)
    allowed = permissions_->check_call(info.caller, *entry, completion.creates() || has_name);
  if (allowed && object) allowed = check_not_held(*object, info.held);
  if (!allowed) return completion.fail(allowed.error().at(caller_.name()));
  info.function = entry->name;

  Invocation in{entry,
                &caller_,
                caller_.weak_from_this(),
                std::move(info),
                std::move(payload),
                std::move(object),
                std::move(completion),
                has_name ? &names_ : nullptr,
                std::move(object_name),
                entry->invoke_batch ? batches_.get() : nullptr};
  if (in.batches) in.payload.keep_body();
  if (in.object && !in.batches) {
    in.payload.keep_body();
    return run_in_turn(std::make_unique<Invocation>(std::move(in)));
  }
  if (!in.info.gate || !in.info.gate->may_hold_back()) return run_invocation(in);
  run_free(std::make_unique<Invocation>(std::move(in)));
}

void Dispatcher::call(InPayload&& payload, CallInfo&& info, Responder responder) {
  start(nullptr, std::move(payload), std::move(info), Completion(std::move(responder)));
}

void Dispatcher::method(std::shared_ptr<HostedObject> object, InPayload&& payload, CallInfo&& info,
                        Responder responder) {
  start(std::move(object), std::move(payload), std::move(info), Completion(std::move(responder)));
}

void Dispatcher::op(InPayload&& payload, CallInfo&& info, Responder responder) {
  Completion completion(std::move(responder));
  if (permissions_) {
    const Result<void> allowed = permissions_->check_operator(info.caller, false);
    if (!allowed) return completion.fail(allowed.error().at(caller_.name()));
  }
  if (!info.gate || !info.gate->may_hold_back()) return run_operator_call(caller_, payload, info, completion);
  run_held_operator(std::make_unique<OperatorCall>(
      OperatorCall{caller_.shared_from_this(), std::move(payload), std::move(info), std::move(completion)}));
}

void Dispatcher::fetch(std::shared_ptr<HostedObject> object, InPayload&& payload, CallInfo&& info,
                       Responder responder) {
  Completion completion(std::move(responder));
  Result<void> allowed = permissions_ ? permissions_->check_reference(info.caller) : Result<void>();
  if (allowed) allowed = check_not_held(*object, info.held);
  if (allowed && !object->type().encode) allowed = detail::cannot_be_sent(object->type().key.name);
  if (!allowed) return completion.fail(allowed.error().at(caller_.name()));
  info.function = "to_here";
  fetch_in_turn(std::make_unique<Fetch>(Fetch{caller_.shared_from_this(), std::move(object), std::move(payload),
                                              std::move(info), std::move(completion)}));
}

Future<std::shared_ptr<HostedObject>> Dispatcher::create(std::shared_ptr<HostedObject> object, InPayload&& payload,
                                                         CallInfo&& info, RRefId id) {
  Completion::Creation creation(caller_.weak_from_this());
  Future<std::shared_ptr<HostedObject>> created = creation.future();
  if (object || !is_operator_creation(payload.body)) {
    start(std::move(object), std::move(payload), std::move(info), Completion(std::move(creation), id));
    return created;
  }
  payload.body = payload.body.subspan(sizeof(std::uint64_t));
  info.function = "operator";
  Result<void> wanted = permissions_ ? permissions_->check_operator(info.caller, true) : Result<void>();
  if (wanted) wanted = begin_served(caller_, info);
  if (!wanted) {
    creation.set(wanted.error().at(caller_.name()));
    return created;
  }
  creation.set(run_operation(caller_, payload, info, [&]() -> Result<std::shared_ptr<HostedObject>> {
    Result<at::Tensor> tensor = single_tensor(run_operator(payload));
    if (!tensor) return tensor.error().at(caller_.name());
    return make_hosted<at::Tensor>(id, caller_.executor(), *std::move(tensor));
  }));
  return created;
}

}  // namespace caftan::rpc
