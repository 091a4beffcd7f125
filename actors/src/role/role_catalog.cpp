#include "caftan/actors/role_catalog.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "caftan/rpc/internal/script.hpp"

namespace caftan::actors {

RoleDefinition& RoleCatalog::add(RoleDefinition definition) {
  roles_.push_back(std::move(definition));
  return roles_.back();
}

namespace {

using Requirements = decltype(RoleDefinition::requirements);

/// Returns the requirements of a role, and that its files name environments of the program.
Requirements with_environments(const RoleDefinition& role, std::shared_ptr<const rl::Environments> known) {
  return [own = role.requirements, keys = role.environments, known = std::move(known)](const std::any& config,
                                                                                       const app::RolePlace& place) {
    auto missing = own ? own(config, place) : std::vector<app::MissingRequirement>();
    for (const RoleDefinition::EnvironmentKey& key : keys) {
      const auto checked = known->check(key.name(config));
      if (checked) continue;
      missing.push_back(
          {.keys = {key.key}, .text = checked.error().text(), .kind = app::MissingRequirement::Kind::file});
    }
    return missing;
  };
}

}  // namespace

Result<app::RoleTypes> RoleCatalog::types() const {
  if (!environment_refused_) return environment_refused_.error();
  app::RoleTypes types;
  types.set_script_check([](const std::filesystem::path& file, bool is_module) -> Result<void> {
    const auto script = rpc::Script::load(file, is_module ? rpc::ScriptUse::module : rpc::ScriptUse::functions);
    return script ? Result<void>() : Result<void>(script.error());
  });
  types.set_functions([catalog = *this] {
    const Registry registry = catalog.make_registry({});
    std::vector<std::string> names;
    for (const std::string_view name : registry.names()) names.emplace_back(name);
    return names;
  });
  for (const RoleDefinition& role : roles_) {
    app::RoleType type{.name = role.name,
                       .doc = role.doc,
                       .config = role.config,
                       .drives = role.run != nullptr,
                       .own_cores = role.own_cores};
    type.requirements = role.environments.empty() ? role.requirements : with_environments(role, environments_);
    for (const RoleDefinition& other : roles_) {
      if (&other != &role && other.type.hash == role.type.hash) {
        return Error(Errc::bad_arguments, "the class " + std::string(role.type.name) + " is registered as '" +
                                              role.name + "' and as '" + other.name + "'; one name is enough");
      }
    }
    for (const RoleDefinition::Use& use : role.uses) {
      const auto used = std::ranges::find(roles_, use.type.hash, [](const RoleDefinition& r) { return r.type.hash; });
      if (used == roles_.end()) {
        return Error(Errc::bad_arguments, "role '" + role.name + "' uses '" + use.name + "' of class " +
                                              std::string(use.type.name) + ", which is no role of this program");
      }
      if (use.min < 0 || use.max < std::max(use.min, 1)) {
        return Error(Errc::bad_arguments, "role '" + role.name + "' uses " + std::to_string(use.min) + " to " +
                                              std::to_string(use.max) + " replicas for '" + use.name +
                                              "': that cannot be");
      }
      type.uses.push_back({.name = use.name, .role_type = used->name, .min = use.min, .max = use.max});
    }
    if (auto added = types.add(std::move(type)); !added) return added.error();
  }
  if (auto checked = check_methods(); !checked) return checked.error();
  return types;
}

/// Refuses methods that a registry would have under one name. Names of roles and of methods may have dots: the method
/// "b.c" of the role "a" has the name of the method "c" of the role "a.b".
Result<void> RoleCatalog::check_methods() const {
  std::map<std::string, std::string> owners;  // by the registered name
  for (const RoleDefinition& role : roles_) {
    for (const RoleDefinition::Method& method : role.methods) {
      const std::string name = role.name + "." + method.name;
      const std::string owner = std::string(method.function) + " of role '" + role.name + "'";
      const auto [first, is_new] = owners.emplace(name, owner);
      if (is_new) continue;
      return Error(Errc::bad_arguments, "the method name '" + name + "' stands for " + first->second + " and for " +
                                            owner + "; give one of them another name");
    }
  }
  return {};
}

Registry RoleCatalog::make_registry(const PlayedRole& played) const {
  Registry registry;
  for (const RoleDefinition& role : roles_) {
    for (const auto& add_to : role.registrations) add_to(registry, role.name, played);
  }
  for (const auto& more : more_) more(registry);
  return registry;
}

const RoleDefinition* RoleCatalog::find(std::string_view name) const {
  const auto found = std::ranges::find(roles_, name, &RoleDefinition::name);
  return found == roles_.end() ? nullptr : &*found;
}

}  // namespace caftan::actors
