#include "caftan/rpc/call.hpp"

#include <c10/core/GradMode.h>

#include "caftan/rpc/call_hook.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/named_object.hpp"

namespace caftan::rpc {

namespace {

/// Sets the deadline of a call that starts now, and which of the time-outs has set it.
/// Errors: bad_arguments, timeout, cancelled.
Result<void> set_deadline(OutRequest& request, Caller& caller, const CallOptions& options, const Ambient* ambient) {
  const base::Duration timeout = options.timeout.value_or(caller.default_timeout());
  if (timeout < base::Duration::zero()) return Error(Errc::bad_arguments, "a timeout is negative; 0 means none");
  if (ambient && ambient->cancel && ambient->cancel->is_set()) {
    return Error(Errc::cancelled, "the caller of the surrounding call gave up; nothing was sent");
  }
  const base::TimePoint inherited = ambient ? ambient->deadline : base::kNever;
  if (timeout == base::Duration::zero() && inherited == base::kNever) return {};
  const base::TimePoint now = caller.executor().clock().now();
  if (inherited <= now) return Error(Errc::timeout, "no time was left of the surrounding call; nothing was sent");
  const bool unbounded = timeout == base::Duration::zero() || timeout >= base::kNever - now;
  request.deadline = unbounded ? inherited : std::min(inherited, now + timeout);
  if (request.deadline == base::kNever) return {};
  request.timeout = request.deadline - now;
  if (!unbounded && request.deadline == now + timeout) {
    request.timeout_of = options.timeout ? TimeoutOf::call : TimeoutOf::worker;
  } else {
    request.timeout_of = TimeoutOf::surrounding;
  }
  return {};
}

Result<void> show_to_hook(const CallTarget& target, OutRequest& request) {
  CallHook* const hook = target.caller->hook();
  if (!hook) return {};
  const Result<HookTicket> ticket = hook->on_request(*target.peer, request);
  if (!ticket)
    return Error(ticket.error().code(), ticket.error().worker(),
                 std::string(request.what) + ": " + ticket.error().text());
  request.hook_ticket = ticket->value;
  return {};
}

}  // namespace

Result<void> fill_request(OutRequest& request, const CallTarget& target, wire::FrameKind kind, const FunctionKey* key,
                          std::string_view what) {
  if (!target.peer) return target.peer.error();
  if (!target.caller) return Error(Errc::shut_down, "the worker has ended");
  const Ambient* const ambient = Ambient::current();
  const Result<void> in_time = set_deadline(request, *target.caller, target.options, ambient);
  if (!in_time) return Error(in_time.error().code(), std::string(what) + ": " + in_time.error().text());
  request.kind = kind;
  request.what = what;
  if (target.object) {
    request.target = target.object->rref();
    request.keep = target.object;
  }
  if (kind != wire::FrameKind::fetch) request.grad_mode = c10::GradMode::is_enabled();
  if (ambient) {
    request.trace = ambient->trace;
    request.depth = ambient->depth;
    request.held = ambient->held;
    request.cancel = ambient->cancel;
  }
  request.body.reuse();
  if (key) write_prologue(request.body, *key);
  return {};
}

CallToken start_call(const CallTarget& target, OutRequest&& request, std::shared_ptr<ReplySink> sink) {
  if (const Result<void> seen = show_to_hook(target, request); !seen) {
    sink->on_reply(seen.error());
    return {};
  }
  return target.caller->submit(*target.peer, std::move(request), target.options, std::move(sink));
}

Result<void> send_tell(const CallTarget& target, OutRequest&& request) {
  // The called code is no part of the calling code: no deadline, no held object, no depth goes along.
  request.held = {};
  request.depth = 0;
  request.cancel.reset();
  const Ambient* const ambient = Ambient::current();
  const bool in_context = ambient && ambient->autograd_context.lock();
  for (at::Tensor& tensor : request.tensors) {
    if (!in_context || !tensor.defined() || !tensor.requires_grad()) continue;
    if (c10::GradMode::is_enabled()) {
      return Error(
          Errc::unsupported, target.caller->name(),
          std::string(request.what) +
              ": an autograd context does not record one-way calls, and an argument needs gradients: detach() it, "
              "or use rpc_async");
    }
    tensor = tensor.detach();
  }
  return target.caller->tell(*target.peer, std::move(request), target.options);
}

Result<std::shared_ptr<RRefHandle>> send_creation(const CallTarget& target, OutRequest&& request, TypeKey type) {
  if (const Result<void> seen = show_to_hook(target, request); !seen) return seen.error();
  return target.caller->create_remote(*target.peer, std::move(request), target.options, type);
}

Result<void> fill_named_request(OutRequest& request, const CallTarget& target, std::string_view name,
                                const FunctionKey& constructor) {
  const Result<void> filled = fill_request(request, target, wire::FrameKind::call, &kGetOrCreate, constructor.name);
  if (!filled) return filled;
  wire::OutArchive archive(request.body);
  archive << name;
  write_prologue(request.body, constructor);
  return {};
}

Result<std::shared_ptr<RRefHandle>> reference_to(TypeKey type, Result<AnyRRef> reply) {
  if (!reply) return reply.error();
  if (!reply->handle || reply->handle->type().hash != type.hash) {
    return Error(Errc::wrong_type, "the reply refers to no " + std::string(type.name));
  }
  return std::move(reply->handle);
}

Error other_signature(const FunctionEntry& entry, std::string_view given) {
  return Error(Errc::bad_arguments,
               entry.name + " is " + std::string(entry.key.signature) + " here, the caller has " + std::string(given));
}

Result<const FunctionKey*> check_key(const CallTarget& target, const FunctionKey& key) {
  if (target.caller) {
    const FunctionEntry* const entry = target.caller->registry().find(key.name_hash, key.name);
    if (entry && entry->key.signature_hash != key.signature_hash) return other_signature(*entry, key.signature);
  }
  return &key;
}

Error not_registered_here(const CallTarget& target, const char* class_tag, std::string_view type,
                          std::string_view function, std::string_view signature) {
  const std::string name(function.starts_with('&') ? function.substr(1) : function);
  const Registry& registry = target.caller->registry();
  if (registry.is_role(class_tag)) {
    const std::string method = name.substr(name.rfind(':') + 1);  // the whole name where it has no ':'
    return Error(Errc::unknown_function, target.caller->name(),
                 "the role class " + std::string(type) + ", of which worker '" + target.peer->name() +
                     "' has an object, has no method registered for " + name + ", " + std::string(signature) +
                     ": program.role<" + std::string(type) + ">(\"" + std::string(*registry.class_name(class_tag)) +
                     "\").method<&" + name + ">(\"" + method + "\") registers it");
  }
  return Error(Errc::unknown_function,
               "this worker has no name for " + name + ", " + std::string(signature) + ": registry.add<&" + name +
                   ">(\"...\") gives it one (a method: registry.add<Class>(\"...\").method<&" + name + ">(\"...\"))");
}

}  // namespace caftan::rpc
