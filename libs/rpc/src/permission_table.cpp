#include "caftan/rpc/internal/permission_table.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "caftan/base/internal/name_pattern.hpp"
#include "caftan/base/settings_diagnostics.hpp"

namespace caftan::rpc {

namespace {

/// The functions by which roles find each other: one per role type (RoleCatalog).
constexpr std::string_view kFindsRole = "caftan.role.";

/// Returns the rule that refuses a function of the role type `type`, "counter.add", or the search for that role;
/// nothing where it is allowed.
std::optional<std::string> refusal_of_role(const PeerPermissions& rules, bool is_named, bool is_search) {
  if (rules.role && rules.role->allowed) return std::nullopt;
  if (rules.functions && is_named) return std::nullopt;
  if (rules.role) return rules.role->name;
  // By default a method needs a reference, which the actor of the object looks for (PM-5); only those find one by
  // themselves who use the role.
  if (is_search && !rules.uses.allowed) return rules.uses.name;
  return std::nullopt;
}

std::optional<std::string> refusal_of_function(const PeerPermissions& rules, const Registry& registry,
                                               const FunctionEntry& entry) {
  if (rules.functions) {
    if (base::matches_any(rules.functions->allowed, entry.name)) return std::nullopt;
    return rules.functions->name;
  }
  const bool is_method = entry.kind == FunctionEntry::Kind::method;
  if (is_method || rules.uses.allowed || registry.is_open(entry.name)) return std::nullopt;
  return rules.uses.name;
}

/// Returns the name of the rule if it refuses, else an empty text.
std::string refusing(const std::optional<PermissionRule<bool>>& rule, const PermissionRule<bool>& otherwise) {
  const PermissionRule<bool>& valid = rule ? *rule : otherwise;
  return valid.allowed ? std::string() : valid.name;
}

}  // namespace

PermissionTable::PermissionTable(const Permissions& rules, const Registry& registry, Setup setup)
    : log_(std::move(setup.log)) {
  groups_.reserve(setup.members.size());  // group_of_ points into it
  for (std::size_t i = 0; i < setup.members.size(); ++i) {
    if (i == setup.self.value) {
      group_of_.push_back(nullptr);
      continue;
    }
    const auto own = rules.peers.find(setup.members[i]);
    const PeerPermissions& of_peer = own == rules.peers.end() ? rules.others : own->second;
    group_of_.push_back(&groups_.emplace_back(make_group(of_peer, registry, setup.entries)));
  }
}

PermissionTable::Group PermissionTable::make_group(const PeerPermissions& rules, const Registry& registry,
                                                   const std::vector<const FunctionEntry*>& entries) {
  Group group;
  group.operators = refusing(rules.operators, rules.uses);
  group.references = refusing(rules.references, {.allowed = true});
  // The role types by the functions that find their roles: a method "counter.add" belongs to "caftan.role.counter".
  std::vector<std::string_view> roles;
  for (const FunctionEntry* const entry : entries) {
    if (entry->name.starts_with(kFindsRole)) roles.push_back(std::string_view(entry->name).substr(kFindsRole.size()));
  }
  const auto is_method_of = [](std::string_view role, const FunctionEntry& entry) {
    return entry.kind == FunctionEntry::Kind::method && base::is_method_of(role, entry.name);
  };
  const std::vector<std::string> none;
  const std::vector<std::string>& named = rules.functions ? rules.functions->allowed : none;
  for (const FunctionEntry* const entry : entries) {
    std::optional<std::string> refusal;
    if (entry->name.starts_with(kFindsRole)) {
      const std::string_view role = std::string_view(entry->name).substr(kFindsRole.size());
      const bool is_named = std::ranges::any_of(entries, [&](const FunctionEntry* other) {
        return is_method_of(role, *other) && base::matches_any(named, other->name);
      });
      refusal = refusal_of_role(rules, is_named, true);
    } else if (std::ranges::any_of(roles, [&](std::string_view role) { return is_method_of(role, *entry); })) {
      refusal = refusal_of_role(rules, base::matches_any(named, entry->name), false);
    } else {
      refusal = refusal_of_function(rules, registry, *entry);
    }
    if (refusal) group.refused.emplace(entry, *std::move(refusal));
  }
  return group;
}

Result<void> PermissionTable::check_call(const Peer& caller, const FunctionEntry& entry, bool refers) const {
  const Group* const group = group_of(caller);
  if (!group) return {};
  if (!group->refused.empty()) {
    const auto refused = group->refused.find(&entry);
    if (refused != group->refused.end()) return refuse(caller, "call " + entry.name, refused->second);
  }
  return refers ? check_reference(caller) : Result<void>();
}

Result<void> PermissionTable::check_operator(const Peer& caller, bool refers) const {
  const Group* const group = group_of(caller);
  if (!group) return {};
  if (!group->operators.empty()) return refuse(caller, "have operators run", group->operators);
  return refers ? check_reference(caller) : Result<void>();
}

Result<void> PermissionTable::check_reference(const Peer& peer) const {
  const Group* const group = group_of(peer);
  if (!group || group->references.empty()) return {};
  return refuse(peer, "refer to objects", group->references);
}

Error PermissionTable::refuse_without_reference(const Peer& caller, const Error& error) const {
  return refuse(caller, "use an object", error.text());
}

Error PermissionTable::refuse(const Peer& caller, const std::string& what, const std::string& rule) const {
  Error error(Errc::not_permitted, caller.name() + " may not " + what + " here: " + rule);
  bool is_first = false;
  {
    const base::LockGuard lock(mutex_);
    is_first = logged_.insert(caller.name() + '\n' + what).second;
  }
  if (is_first) log_("not permitted: " + error.text() + " (logged once)");
  return error;
}

Result<void> check_permissions(const Permissions& rules, const std::vector<std::string>& members,
                               const Registry& registry) {
  std::vector<std::string> names;
  for (const std::string_view name : registry.names()) names.emplace_back(name);
  const auto check_functions = [&names](const PeerPermissions& peer) -> Result<void> {
    if (!peer.functions) return {};
    for (const std::string& pattern : peer.functions->allowed) {
      const bool is_known =
          std::ranges::any_of(names, [&pattern](const std::string& name) { return base::matches(pattern, name); });
      if (is_known) continue;
      return Error(Errc::invalid_config,
                   "permissions: nothing is registered as '" + pattern + "'" + did_you_mean(pattern, names));
    }
    return {};
  };
  for (const auto& [name, peer] : rules.peers) {
    if (std::ranges::find(members, name) == members.end()) {
      return Error(Errc::invalid_config,
                   "permissions: no worker '" + name + "' in this job" + did_you_mean(name, members));
    }
    if (auto checked = check_functions(peer); !checked) return checked;
  }
  return check_functions(rules.others);
}

}  // namespace caftan::rpc
