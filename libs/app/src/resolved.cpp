#include "caftan/app/internal/resolved.hpp"

#include <algorithm>

#include "caftan/base/settings_io.hpp"

namespace caftan::app {
namespace {

/// Returns the settings as a table of the file. They come as a copy, because bind_settings needs an object that can be
/// written to.
template <class Settings>
std::string table_text(const std::string& name, Settings settings) {
  return "\n[" + name + "]\n" + dump_settings(bind_settings(settings), name);
}

/// "a role", or ["a role", "another"]
std::string roles_text(const std::vector<std::string>& roles) {
  if (roles.size() == 1) return quote_toml(roles.front());
  std::string text;
  for (const std::string& role : roles) text += (text.empty() ? "[" : ", ") + quote_toml(role);
  return text + "]";
}

std::string scripts_text(const std::string& table, const std::vector<RoleSpec::Script>& scripts) {
  std::string text = scripts.empty() ? "" : "\n[" + table + "]\n";
  for (const RoleSpec::Script& script : scripts) text += script.name + " = " + quote_toml(script.file.string()) + "\n";
  return text;
}

std::string role_text(const RoleSpec& role, const RoleType& type) {
  const std::string name = "roles." + role.name;
  RoleKeys keys = role.keys;
  std::vector<SettingField> fields = bind_settings(keys);
  // `replicas` and `hosts` are left out where the file does not give them: `replicas` would give the workers other
  // names, and an empty `hosts` is an error.
  std::erase_if(fields, [&](const SettingField& field) {
    return (field.name == "replicas" && !role.has_replicas) || (field.name == "hosts" && keys.hosts.empty());
  });
  std::string text = "\n[" + name + "]\n";
  for (const std::string& note : role.notes) text += "# " + printable(note) + "\n";
  text += dump_settings(fields, name);
  std::any config = role.config;
  const std::vector<SettingField> config_fields = type.config.bind(config);
  if (!config_fields.empty()) text += "\n[" + name + ".config]\n" + dump_settings(config_fields, name + ".config");
  for (const auto& [replica, own] : role.configs) {
    const std::string table = name + ".per_replica." + std::to_string(replica);
    config = own;
    text += "\n[" + table + "]\n" + dump_settings(type.config.bind(config), table);
  }
  text += scripts_text(name + ".scripts", role.scripts) + scripts_text(name + ".modules", role.modules);
  if (!role.uses.empty()) text += "\n[" + name + ".uses]\n";
  for (const RoleSpec::Use& use : role.uses) {
    const bool bare = use.name.find('.') == std::string::npos;
    text += (bare ? use.name : quote_toml(use.name)) + " = " + roles_text(use.roles) + "\n";
  }
  return text;
}

std::string permissions_text(const RolePermissions& rules) {
  std::string text = "\n[permissions." + rules.role + "]\n";
  const auto add = [&text](const std::string& key, const std::optional<RolePermissions::Rule>& rule) {
    if (!rule) return;
    std::string names;
    for (const std::string& name : rule->names) names += (names.empty() ? "" : ", ") + quote_toml(name);
    text += key + " = [" + names + "]\n";
  };
  add("functions", rules.functions);
  add("roles", rules.roles);
  add("operators", rules.operators);
  add("references", rules.references);
  return text;
}

std::string host_text(const HostSpec& host) {
  std::string heading = "\n[hosts." + quote_toml(host.name) + "]\n";
  if (!host.interface.empty()) heading += "interface = " + quote_toml(host.interface) + "\n";
  if (host.address.empty()) return heading;
  std::string address = host.address;
  if (host.port != 0) {
    if (address.find(':') != std::string::npos) address = "[" + address + "]";
    address += ":" + std::to_string(host.port);
  }
  return heading + "address = " + quote_toml(address) + "\n";
}

}  // namespace

std::string resolved_text(const Application& application, const RoleTypes& types) {
  std::string text = "# Resolved from " + quote_toml(application.file.filename().string()) +
                     ": every key with its value.\ncaftan = " + std::to_string(kSchemaVersion) + "\n";
  text += table_text("run", application.run);
  for (const RoleSpec& role : application.roles) text += role_text(role, *types.find(role.keys.type));
  text += table_text("cluster", application.cluster);
  for (const HostSpec& host : application.hosts) text += host_text(host);
  text += table_text("permissions", application.permissions);
  for (const RolePermissions& rules : application.role_permissions) text += permissions_text(rules);
  text += table_text("tls", application.tls);
  text += table_text("limits", application.limits);
  return text + table_text("output", application.output);
}

}  // namespace caftan::app
