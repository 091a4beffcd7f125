#include "caftan/rpc/rref.hpp"

#include <algorithm>

#include "caftan/rpc/hosted_object.hpp"
#include "permitted_wait.hpp"

namespace caftan::rpc {

namespace {

Error empty_reference() { return Error(Errc::bad_arguments, "this RRef is empty"); }

}  // namespace

CallTarget target_of(const std::shared_ptr<RRefHandle>& handle, const CallOptions& options) {
  CallTarget target;
  target.options = options;
  target.object = handle;
  if (!handle) {
    target.peer = empty_reference();
  } else if (const auto failed = handle->failed()) {
    target.peer = *failed;
  } else {
    target.caller = handle->caller();
    target.peer = handle->owner();
  }
  return target;
}

Result<base::TimePoint> wait_deadline(const std::shared_ptr<RRefHandle>& handle, const CallOptions& options) {
  if (!handle) return empty_reference();
  const std::shared_ptr<Caller> caller = handle->caller();
  if (!caller) return Error(Errc::shut_down, "the worker has ended");
  const base::Duration timeout = options.timeout.value_or(caller->default_timeout());
  if (timeout < base::Duration::zero()) return Error(Errc::bad_arguments, "a timeout is negative; 0 means none");
  const base::TimePoint inherited = Ambient::current() ? Ambient::current()->deadline : base::kNever;
  const base::TimePoint now = caller->executor().clock().now();
  const bool unbounded = timeout == base::Duration::zero() || timeout >= base::kNever - now;
  return unbounded ? inherited : std::min(inherited, now + timeout);
}

Result<void> wait_until(FutureCore& future, Caller& caller, base::TimePoint deadline, std::string_view what) {
  const auto waited = permitted_wait(future, deadline);
  if (!waited) return waited.error().at(caller.name());
  if (*waited) return {};
  return Error(Errc::timeout, caller.name(), std::string(what) + ": the value was not there in time");
}

Result<std::shared_ptr<HostedObject>> wait_for_local(const std::shared_ptr<RRefHandle>& handle,
                                                     const CallOptions& options) {
  const Result<base::TimePoint> deadline = wait_deadline(handle, options);
  if (!deadline) return deadline.error();
  return wait_for_local_until(handle, *deadline);
}

Result<std::shared_ptr<HostedObject>> wait_for_local_until(const std::shared_ptr<RRefHandle>& handle,
                                                           base::TimePoint deadline) {
  const std::shared_ptr<Caller> caller = handle->caller();
  if (!caller) return Error(Errc::shut_down, "the worker has ended");
  Future<std::shared_ptr<HostedObject>> object = handle->local_value();
  const Result<void> waited = wait_until(*object.state(), *caller, deadline, "local_value");
  if (!waited) return waited.error();
  return std::move(object).outcome();
}

Result<void> check_not_held(const HostedObject& object, const HeldObjects& held) {
  if (!held) return {};
  const RRefId whole = object.shared_strand()->object();
  const auto same = [&whole](const HeldObject& h) { return h.id == whole && !h.is_over(); };
  if (std::none_of(held->begin(), held->end(), same)) return {};
  std::string chain;
  for (const HeldObject& h : *held) chain += h.name + " -> ";
  return Error(Errc::would_deadlock, object.name() + " keeps its turn while it waits, and the call came back to it: " +
                                         chain + object.name());
}

void save_rref(wire::OutArchive& to, const std::shared_ptr<RRefHandle>& handle) {
  RRefSink* const sink = to.companion<RRefSink>();
  if (!sink) throw wire::EncodeError(Error(Errc::unsupported, "an RRef can only travel in a call or its result"));
  if (!handle) return to.save_count(0);
  const auto found = std::find(sink->handles.begin(), sink->handles.end(), handle);
  to.save_count(static_cast<std::uint64_t>(found - sink->handles.begin()) + 1);
  if (found == sink->handles.end()) sink->handles.push_back(handle);
}

void load_rref(wire::InArchive& from, std::shared_ptr<RRefHandle>& handle) {
  const RRefSource* const source = from.companion<RRefSource>();
  if (!source) throw wire::DecodeError("an RRef can only travel in a call or its result");
  const std::uint64_t index = from.load_number();
  if (index == 0) return handle.reset();
  if (index > source->handles.size() || !source->handles[index - 1]) {
    throw wire::DecodeError("a reference is not in the manifest");
  }
  handle = source->handles[index - 1];
}

void load_rref(wire::InArchive& from, std::shared_ptr<RRefHandle>& handle, TypeKey type) {
  load_rref(from, handle);
  if (handle && handle->type().hash != type.hash) {
    handle.reset();
    throw wire::DecodeError("a reference to a value of another type", Errc::wrong_type);
  }
}

}  // namespace caftan::rpc
