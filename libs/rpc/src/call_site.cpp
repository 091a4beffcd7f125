#include "caftan/rpc/call_site.hpp"

#include "caftan/base/fnv1a.hpp"
#include "caftan/rpc/group.hpp"

namespace caftan {

Result<Peer> rpc::Destination::find(rpc::Caller& caller) const {
  if (const auto* name = std::get_if<std::string_view>(&to_)) return caller.find_peer(*name);
  if (const auto* id = std::get_if<WorkerId>(&to_)) return caller.find_peer(*id);
  const Peer& peer = **std::get_if<const Peer*>(&to_);
  if (!peer) return Error(Errc::bad_arguments, "this Peer is empty");
  if (!caller.knows(*peer.record())) {
    return Error(Errc::bad_arguments, "this Peer '" + peer.name() +
                                          "' belongs to another Worker of this process; take " + caller.name() +
                                          ".peer(\"" + peer.name() + "\")");
  }
  return peer;
}

Result<std::shared_ptr<rpc::Caller>> CallSite::alive() const {
  auto caller = caller_.lock();
  if (!caller) return Error(Errc::shut_down, "the worker has ended");
  return caller;
}

Result<Peer> CallSite::try_peer(rpc::Destination to) const {
  const auto caller = alive();
  if (!caller) return caller.error();
  return to.find(**caller);
}

WorkerGroup CallSite::group(const std::vector<std::string>& members) const { return try_group(members).value(); }

Result<WorkerGroup> CallSite::try_group(const std::vector<std::string>& members) const {
  std::vector<Peer> peers;
  for (const std::string& name : members) {
    Result<Peer> peer = try_peer(name);
    if (!peer) return peer.error();
    peers.push_back(*std::move(peer));
  }
  auto group = std::make_shared<const rpc::GroupMembers>(caller_, std::move(peers));
  if (group->refused()) return *group->refused();
  return WorkerGroup(std::move(group), options_);
}

Future<rpc::Contributions> CallSite::gather(std::string what, const std::vector<std::string>& members,
                                            rpc::Contribution value) const {
  const auto caller = alive();
  if (!caller) return make_ready_future<rpc::Contributions>(caller.error());
  return (*caller)->gather({std::move(what), members, std::move(value)}, options_);
}

Future<void> CallSite::barrier_async(const std::vector<std::string>& members) const {
  rpc::Contribution nothing;
  nothing.type = wire::type_hash<std::monostate>();
  nothing.type_name = "barrier";
  return gather("barrier", members, std::move(nothing)).then([](Result<rpc::Contributions> all) -> Result<void> {
    if (!all) return all.error();
    for (const auto& [member, value] : *all) {
      if (value.type == wire::type_hash<std::monostate>()) continue;
      return Error(Errc::wrong_type, member,
                   "barrier: " + member + " has called all_gather with a " + value.type_name + " instead");
    }
    return {};
  });
}

rpc::CallTarget CallSite::target_of(const rpc::Destination& to) const {
  rpc::CallTarget target;
  target.options = options_;
  target.caller = caller_.lock();
  if (target.caller) {
    target.peer = to.find(*target.caller);
  } else {
    target.peer = Error(Errc::shut_down, "the worker has ended");
  }
  return target;
}

Result<const rpc::FunctionKey*> CallSite::constructor_key(const rpc::CallTarget& target, const char* class_tag,
                                                          std::string_view signature, std::string_view type) {
  if (!target.caller) return target.peer.error();
  const Registry& registry = target.caller->registry();
  const auto class_name = registry.class_name(class_tag);
  if (!class_name) {
    return Error(Errc::unknown_function, "this worker has no name for the class " + std::string(type) +
                                             ": registry.add<" + std::string(type) + ">(\"...\") gives it one");
  }
  const std::string name = rpc::constructor_name(*class_name, signature, type);
  const rpc::FunctionEntry* const entry = registry.find(base::fnv1a(name), name);
  if (entry) return &entry->key;
  std::string known;
  for (const std::string_view other : registry.names()) {
    if (!other.starts_with(std::string(*class_name) + "(")) continue;
    known += (known.empty() ? "; registered: " : ", ") + std::string(other);
  }
  return Error(Errc::bad_arguments, "there is no constructor " + name + known);
}

}  // namespace caftan
