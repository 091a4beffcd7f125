#include "caftan/rpc/group_call.hpp"

#include <algorithm>

#include "caftan/rpc/internal/shared_arguments.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan::rpc {

GroupMembers::GroupMembers(std::weak_ptr<Caller> caller, std::vector<Peer> peers) : caller_(std::move(caller)) {
  for (std::size_t i = 0; i < peers.size() && !refused_; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (peers[j].id() != peers[i].id()) continue;
      refused_ = Error(Errc::bad_arguments, "a group has the worker " + peers[i].name() + " twice");
    }
  }
  if (peers.empty()) refused_ = Error(Errc::bad_arguments, "a group without members: nothing can be called");
  for (Peer& peer : peers) members_.push_back({std::move(peer), nullptr});
}

GroupMembers::GroupMembers(std::vector<std::shared_ptr<RRefHandle>> objects) {
  for (std::size_t i = 0; i < objects.size() && !refused_; ++i) {
    if (!objects[i]) {
      refused_ = Error(Errc::bad_arguments, "reference " + std::to_string(i + 1) + " of a group is empty");
      break;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (objects[j]->rref() != objects[i]->rref()) continue;
      refused_ = Error(Errc::bad_arguments, "a group has the same value of " + objects[i]->owner().name() + " twice");
    }
  }
  if (objects.empty()) refused_ = Error(Errc::bad_arguments, "a group without members: nothing can be called");
  for (auto& object : objects) members_.push_back({Peer(), std::move(object)});
}

const std::string& GroupMembers::name(std::size_t member) const {
  const Member& one = members_[member];
  return one.object ? one.object->owner().name() : one.peer.name();
}

std::vector<CallTarget> GroupMembers::targets(const CallOptions& options) const {
  std::vector<CallTarget> targets;
  targets.reserve(members_.size());
  for (const Member& member : members_) {
    if (member.object) {
      targets.push_back(target_of(member.object, options));
      if (targets.back().peer && !targets.back().caller) {
        targets.back().peer = Error(Errc::shut_down, "the worker has ended");
      }
      continue;
    }
    const std::shared_ptr<Caller> caller = caller_.lock();
    targets.push_back({.caller = caller,
                       .peer = caller ? Result<Peer>(member.peer) : Error(Errc::shut_down, "the worker has ended"),
                       .options = options,
                       .object = nullptr});
  }
  return targets;
}

Error GroupMembers::of_member(std::size_t member, std::string_view what, const Error& error) const {
  const std::string& name = this->name(member);
  std::shared_ptr<const Error> cause;
  if (!error.worker().empty() && error.worker() != name) {
    cause = std::make_shared<const Error>(error);
  } else if (error.cause()) {
    cause = std::make_shared<const Error>(*error.cause());
  }
  const std::string place = std::to_string(member + 1) + " of " + std::to_string(members_.size());
  Error named(error.code(), name,
              "group call of " + std::string(what) + ", member " + place + ", " + name + ": " + error.text(),
              std::move(cause));
  return error.kind().empty() ? named : named.of_kind(error.kind());
}

Result<void> GroupMembers::check_elements(std::size_t elements) const {
  if (elements == members_.size()) return {};
  return Error(Errc::bad_arguments, "scatter: " + std::to_string(elements) + " elements for the " +
                                        std::to_string(members_.size()) +
                                        " members of the group; each member takes one");
}

const CallTarget* first_callable(std::span<const CallTarget> targets) {
  const auto found = std::ranges::find_if(targets, [](const CallTarget& target) { return target.peer.has_value(); });
  return found == targets.end() ? nullptr : &*found;
}

Result<void> fill_common(OutRequest& request, std::span<const CallTarget> targets, const FunctionKey& key) {
  request.what = key.name;
  const CallTarget* const any = first_callable(targets);
  if (!any) return {};
  return fill_request(request, *any, any->object ? wire::FrameKind::method : wire::FrameKind::call, &key, key.name);
}

Result<void> fill_fetches(OutRequest& request, std::span<const CallTarget> targets) {
  request.what = "to_here";
  const CallTarget* const any = first_callable(targets);
  return any ? fill_request(request, *any, wire::FrameKind::fetch, nullptr, request.what) : Result<void>();
}

void share_arguments(OutRequest& request) {
  request.shared = std::make_shared<SharedArguments>();
  request.shared->body.swap(request.body);
}

OutRequest request_for(const OutRequest& common, const CallTarget& target) {
  OutRequest request = common;
  if (target.object) {
    request.target = target.object->rref();
    request.keep = target.object;
  }
  return request;
}

Result<void> send_tells(const GroupMembers& members, std::span<const CallTarget> targets, OutRequest&& request) {
  share_arguments(request);
  Result<void> first;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Result<void> sent = targets[i].peer ? send_tell(targets[i], request_for(request, targets[i]))
                                              : Result<void>(targets[i].peer.error());
    if (!sent && first) first = members.of_member(i, request.what, sent.error());
  }
  return first;
}

base::TimePoint now_of(const std::weak_ptr<Caller>& caller) {
  const std::shared_ptr<Caller> alive = caller.lock();
  return alive ? alive->executor().clock().now() : base::TimePoint{};
}

Result<CallOptions> rest_of(const CallOptions& options, const std::weak_ptr<Caller>& caller, base::TimePoint begun) {
  const std::shared_ptr<Caller> alive = caller.lock();
  if (!alive) return Error(Errc::shut_down, "the worker has ended");
  CallOptions rest = options;
  const base::Duration timeout = options.timeout.value_or(alive->default_timeout());
  if (timeout == base::Duration::zero()) return rest;
  rest.timeout = timeout - (alive->executor().clock().now() - begun);
  if (*rest.timeout > base::Duration::zero()) return rest;
  return Error(Errc::timeout, alive->name(), "no time was left to send the total to the members of the group");
}

}  // namespace caftan::rpc
