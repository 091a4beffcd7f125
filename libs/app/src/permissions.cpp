#include "caftan/app/internal/permissions.hpp"

#include <algorithm>

namespace caftan::app {
namespace {

/// Returns "cartpole.toml:31", or "command line".
std::string place_text(const Application& application, const SettingsPlace& place) {
  if (place.override_index >= 0) return "command line";
  return application.file.filename().string() + ":" + std::to_string(place.line);
}

/// Returns whether one of the workers of `caller` that `uses` lists is `worker`.
bool is_used(const PlannedWorker& caller, const PlannedWorker& worker) {
  return std::ranges::any_of(caller.uses, [&worker](const PlannedUse& use) {
    return std::ranges::find(use.workers, worker.id) != use.workers.end();
  });
}

PeerPermissions permissions_of(const Application& application, const PlannedWorker& caller,
                               const PlannedWorker& worker) {
  PeerPermissions permissions;
  const bool is_open = application.permissions.otherwise == PermissionDefault::open;
  const SettingsPlace& role = application.find_role(caller.role)->place;
  permissions.uses = {.allowed = is_open || is_used(caller, worker),
                      .name = "role '" + caller.role + "' does not use role '" + worker.role + "' (" +
                              place_text(application, role) + "), and [permissions] does not allow it"};
  const RolePermissions* const rules = application.find_permissions(caller.role);
  if (!rules) return permissions;
  const auto name_of = [&](const char* key, const RolePermissions::Rule& rule) {
    return "[permissions." + caller.role + "] " + key + " (" + place_text(application, rule.place) + ")";
  };
  if (rules->functions) {
    permissions.functions = {.allowed = rules->functions->names, .name = name_of("functions", *rules->functions)};
  }
  const auto names_role = [&](const char* key, const std::optional<RolePermissions::Rule>& rule) {
    std::optional<PermissionRule<bool>> made;
    if (!rule) return made;
    const bool allowed = std::ranges::find(rule->names, worker.role) != rule->names.end();
    made = {.allowed = allowed, .name = name_of(key, *rule) + " does not name role '" + worker.role + "'"};
    return made;
  };
  permissions.role = names_role("roles", rules->roles);
  permissions.operators = names_role("operators", rules->operators);
  permissions.references = names_role("references", rules->references);
  return permissions;
}

}  // namespace

Permissions permissions_at(const Application& application, const Plan& plan, const PlannedWorker& worker) {
  Permissions permissions;
  for (const PlannedWorker& caller : plan.workers) {
    if (caller.id != worker.id) permissions.peers.emplace(caller.name, permissions_of(application, caller, worker));
  }
  return permissions;
}

}  // namespace caftan::app
