// [roles.NAME]: its own keys, the config that belongs to its type, the scripts that it serves, and what it uses.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "application_reader.hpp"
#include "caftan/base/internal/joined.hpp"
#include "use_text.hpp"

namespace caftan::app {
namespace {

constexpr std::size_t kMaxRoleName = 64;

bool is_role_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxRoleName && name.front() >= 'a' && name.front() <= 'z' &&
         std::ranges::all_of(
             name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; });
}

std::string table_of(const RoleSpec& role, std::string_view inner = "") {
  return "roles." + role.name + (inner.empty() ? "" : "." + std::string(inner));
}

/// Returns the table `key` of a role, null if it is missing; reports a value that is no table.
const SettingsNode* inner_table(const Reading& reading, const SettingsNode& role, std::string_view key) {
  const SettingsEntry* entry = role.find(key);
  if (!entry) return nullptr;
  if (entry->value.kind == SettingsNode::Kind::table) return &entry->value;
  reading.diagnostics.error(entry->value.place, entry->key + " must be a table, is " + entry->value.describe());
  return nullptr;
}

/// Makes the paths of the fields absolute through all links when the file is read, because a run makes runs/latest
/// point to itself before its roles read the paths.
void follow_links(std::vector<SettingField>& fields) {  // NOLINT(misc-no-recursion)
  for (SettingField& field : fields) {
    follow_links(field.fields);
    if (field.kind != SettingKind::path) continue;
    const SettingValue value = field.get();
    const auto* const text = std::get_if<std::string>(&value);
    if (!text || !std::filesystem::path(*text).is_absolute()) continue;
    std::error_code error;  // a path that does not exist keeps its name
    const std::filesystem::path real = std::filesystem::canonical(*text, error);
    if (!error) field.set(real.string());
  }
}

/// Returns the value of a key, null if the table has no such key.
/// @param key  "corpus.path" is the key `path` in the sub-table `corpus`
const SettingsNode* find_value(const SettingsNode& table, std::string_view key) {
  const SettingsNode* node = &table;
  while (node) {
    const std::size_t dot = key.find('.');
    const SettingsEntry* const entry = node->find(key.substr(0, dot));
    node = entry ? &entry->value : nullptr;
    if (dot == std::string_view::npos) return node;
    key.remove_prefix(dot + 1);
  }
  return nullptr;
}

/// Returns the place in the file to which the finding is reported; command-line overrides take precedence.
SettingsPlace place_of(const MissingRequirement& requirement, const SettingsNode* table, const SettingsNode& role) {
  const SettingsNode* found = nullptr;
  for (const std::string& key : requirement.keys) {
    const SettingsNode* const value = table ? find_value(*table, key) : nullptr;
    if (value && (!found || (found->place.override_index < 0 && value->place.override_index >= 0))) found = value;
  }
  return found ? found->place : role.place;
}

/// Reads a table of a role's config; after an error `config` is empty. Returns whether there was no error.
bool read_fields(const Reading& reading, const RoleType& type, const SettingsNode& table, const std::string& name,
                 std::any& config) {
  config = type.config.make();
  std::vector<SettingField> fields = type.config.bind(config);
  ReadSettings options;
  options.table = name;
  options.owner = type.name;
  options.base = reading.application.file.parent_path();
  options.help = "caftan help " + type.name;
  const std::size_t before = reading.diagnostics.errors();
  read_settings(table, fields, options, reading.diagnostics);
  follow_links(fields);
  if (reading.diagnostics.errors() == before) return true;
  config.reset();
  return false;
}

/// Returns the number of the replica that the entry names; after an error, which it reports, nothing.
std::optional<int> read_replica(const Reading& reading, const RoleSpec& role, const SettingsEntry& entry) {
  int number = 0;
  const auto [end, error] = std::from_chars(entry.key.data(), entry.key.data() + entry.key.size(), number);
  const bool is_number = error == std::errc() && end == entry.key.data() + entry.key.size() &&
                         std::to_string(number) == entry.key;  // "01" is no second name of replica 1
  if (!is_number || number < 0 || number >= role.keys.replicas) {
    reading.diagnostics.error(entry.key_place, "per_replica." + entry.key + ": role '" + role.name +
                                                   "' has replicas 0.." + std::to_string(role.keys.replicas - 1));
    return std::nullopt;
  }
  if (entry.value.kind == SettingsNode::Kind::table) return number;
  reading.diagnostics.error(entry.value.place,
                            "per_replica." + entry.key + " must be a table, is " + entry.value.describe());
  return std::nullopt;
}

void read_config(const Reading& reading, const RoleType& type, const SettingsNode& node, RoleSpec& role) {
  const SettingsNode* const table = inner_table(reading, node, "config");
  const SettingsNode* const each = inner_table(reading, node, "per_replica");
  if ((!table && node.find("config")) || (!each && node.find("per_replica"))) return;
  SettingsNode missing;
  missing.place = node.place;
  const SettingsNode& below = table ? *table : missing;
  // An error of the shared table would be reported again for each replica.
  if (!read_fields(reading, type, below, table_of(role, "config"), role.config)) return;
  for (const SettingsEntry& entry : each ? each->entries : missing.entries) {
    const auto number = read_replica(reading, role, entry);
    if (!number) continue;
    const SettingsNode own = merge_settings(below, entry.value);
    read_fields(reading, type, own, table_of(role, "per_replica." + entry.key), role.configs[*number]);
  }
}

/// Returns the path from the folder of the application file, through all links, as `follow_links` does.
std::filesystem::path resolve(const Reading& reading, const std::string& path) {
  const std::filesystem::path file = (reading.application.file.parent_path() / path).lexically_normal();
  std::error_code error;  // what does not exist keeps its name
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  return error ? file : real;
}

/// @param name  "scripts" or "modules"
std::vector<RoleSpec::Script> read_scripts(const Reading& reading, const SettingsNode& node, const std::string& name) {
  std::vector<RoleSpec::Script> scripts;
  const SettingsNode* const table = inner_table(reading, node, name);
  for (const SettingsEntry& entry : table ? table->entries : std::vector<SettingsEntry>()) {
    const std::string key = name + "." + entry.key;
    if (!is_role_name(entry.key)) {
      reading.diagnostics.error(entry.key_place,
                                "a name in " + name +
                                    " must be a-z 0-9 - _, start with a letter and have 1..64 characters, is " +
                                    quote_toml(entry.key));
    } else if (entry.value.kind != SettingsNode::Kind::text) {
      reading.diagnostics.error(
          entry.value.place, key + " must be a string, the path of a TorchScript file, is " + entry.value.describe());
    } else if (const auto& path = std::get<std::string>(entry.value.scalar); path.empty()) {
      reading.diagnostics.error(entry.value.place, key + " must be the path of a TorchScript file, is empty");
    } else {
      scripts.push_back({entry.key, resolve(reading, path), entry.value.place});
    }
  }
  return scripts;
}

/// An override of a role that the file does not have makes a table of its own: most likely its name is mistyped.
bool is_unknown_role(const Reading& reading, const SettingsNode& roles, const SettingsEntry& entry) {
  if (entry.key_place.override_index < 0 || entry.value.kind != SettingsNode::Kind::table || entry.value.find("type")) {
    return false;
  }
  std::vector<std::string> names;
  for (const SettingsEntry& other : roles.entries) {
    if (&other != &entry && other.key_place.override_index < 0) names.push_back(other.key);
  }
  reading.diagnostics.error(entry.key_place, "no role '" + entry.key + "' in the file" +
                                                 did_you_mean(entry.key, names) +
                                                 (names.empty() ? "" : " (it has: " + base::joined(names) + ")"));
  return true;
}

void read_role(const Reading& reading, const SettingsEntry& entry) {
  RoleSpec role;
  role.name = entry.key;
  role.place = entry.value.place;
  if (!is_role_name(role.name)) {
    reading.diagnostics.error(entry.key_place,
                              "a role's name must be a-z 0-9 - _, start with a letter and have 1..64 "
                              "characters, is " +
                                  quote_toml(role.name));
  }
  if (entry.value.kind != SettingsNode::Kind::table) {
    return reading.diagnostics.error(entry.value.place,
                                     table_of(role) + " must be a table, is " + entry.value.describe());
  }
  std::vector<SettingField> fields = bind_settings(role.keys);
  ReadSettings options;
  options.table = table_of(role);
  options.other_keys = {"config", "modules", "per_replica", "scripts", "uses"};
  read_settings(entry.value, fields, options, reading.diagnostics);
  role.has_replicas = entry.value.find("replicas") != nullptr;
  const SettingsEntry* hosts = entry.value.find("hosts");
  if (hosts && hosts->value.kind == SettingsNode::Kind::list && hosts->value.items.empty()) {
    reading.diagnostics.error(hosts->value.place, "hosts must name at least one host");
  }

  role.scripts = read_scripts(reading, entry.value, "scripts");
  role.modules = read_scripts(reading, entry.value, "modules");

  const SettingsEntry* type_entry = entry.value.find("type");
  const RoleType* type = reading.types.find(role.keys.type);
  if (type) {
    role.drives = type->drives;
    role.own_cores = type->own_cores;
    read_config(reading, *type, entry.value, role);
  } else if (type_entry && type_entry->value.kind == SettingsNode::Kind::text) {
    const std::vector<std::string> names = reading.types.names();
    const std::string meant = did_you_mean(role.keys.type, names);
    reading.diagnostics.error(type_entry->value.place, "no role type '" + role.keys.type + "' in this program" + meant +
                                                           " (it has: " + base::joined(names) + ")");
  }
  reading.application.roles.push_back(std::move(role));
}

/// Two roles may not make workers of the same name: "observer-1" and replica 1 of "observer".
void check_worker_names(const Reading& reading) {
  std::map<std::string, const RoleSpec*> owners;
  for (const RoleSpec& role : reading.application.roles) {
    for (int replica = 0; replica < role.keys.replicas; ++replica) {
      const std::string worker = role.worker_name(replica);
      const auto [owner, added] = owners.emplace(worker, &role);
      if (added) continue;
      reading.diagnostics.error(role.place, "worker '" + worker + "' of role '" + role.name +
                                                "' has the name of a worker of role '" + owner->second->name + "'" +
                                                line_text(owner->second->place));
      break;
    }
  }
}

/// Returns the roles that a use names, each with its place in the file. A use is a string or a list of strings; reports
/// any other value, and names that are no role.
std::vector<std::pair<const RoleSpec*, SettingsPlace>> find_used(const Reading& reading, const RoleUse& use,
                                                                 const SettingsNode& value) {
  const bool is_list = value.kind == SettingsNode::Kind::list;
  const std::vector<SettingsNode> single{value};
  std::vector<std::pair<const RoleSpec*, SettingsPlace>> found;
  std::vector<std::string> role_names;
  for (const RoleSpec& other : reading.application.roles) role_names.push_back(other.name);
  if (is_list && value.items.empty()) {
    reading.diagnostics.error(value.place, "uses." + use.name + " must name at least one role");
  }
  for (const SettingsNode& item : is_list ? value.items : single) {
    if (item.kind != SettingsNode::Kind::text) {
      reading.diagnostics.error(
          item.place,
          "uses." + use.name + " must be a string, the name of a role, or a list of them, is " + item.describe());
      continue;
    }
    const auto& name = std::get<std::string>(item.scalar);
    const RoleSpec* const used = reading.application.find_role(name);
    const bool is_twice = std::ranges::any_of(found, [used](const auto& other) { return other.first == used; });
    if (!used) {
      reading.diagnostics.error(item.place,
                                "uses." + use.name + ": no role '" + name + "'" + did_you_mean(name, role_names));
    } else if (is_twice) {
      reading.diagnostics.error(item.place, "uses." + use.name + " names role '" + name + "' twice");
    } else {
      found.emplace_back(used, item.place);
    }
  }
  return found;
}

/// Checks one use of a role; the roles that it names exist.
void check_use(const Reading& reading, const RoleSpec& role, const RoleUse& use, const SettingsNode& value,
               const std::vector<std::pair<const RoleSpec*, SettingsPlace>>& all) {
  const std::string wants = "uses." + use.name + " wants ";
  int count = 0;
  bool itself = false;
  std::string names;
  for (const auto& [used, place] : all) {
    const std::string found = "role '" + used->name + "'" + line_text(used->place);
    if (used->keys.type != use.role_type) {
      if (!reading.types.find(used->keys.type)) return;  // reported where its type stands
      return reading.diagnostics.error(
          place, wants + with_article(use.role_type) + ", " + found + " is " + with_article(used->keys.type));
    }
    itself = itself || used == &role;
    count += used->keys.replicas - (used == &role ? 1 : 0);
    names += (names.empty() ? "" : ", ") + found;
  }
  if (count >= use.min && count <= use.max) return;
  reading.diagnostics.error(value.place, wants + count_text(use.min, use.max) + " " + use.role_type + ", " + names +
                                             (all.size() == 1 ? " has " : " have ") + std::to_string(count) +
                                             (count == 1 ? " replica" : " replicas") +
                                             (itself ? " beside the asking one" : ""));
}

/// Reports the keys of [roles.NAME.uses] that the role type does not declare as uses.
void report_undeclared(const Reading& reading, const RoleType& type, const SettingsNode& table, const RoleSpec& role) {
  std::vector<std::string> declared;
  for (const RoleUse& use : type.uses) declared.push_back(use.name);
  for (const SettingsEntry& entry : table.entries) {
    if (std::ranges::find(declared, entry.key) != declared.end()) continue;
    std::string text = "unknown key '" + entry.key + "'";
    // A key from the command line contains the name of its table already.
    if (entry.key_place.override_index < 0) text += " in [" + table_of(role, "uses") + "]";
    const std::string meant = did_you_mean(entry.key, declared);
    const std::string declare =
        "; declare the use in main: program.role<...>(\"" + type.name + "\").uses<...>(\"" + entry.key + "\")";
    reading.diagnostics.error(entry.key_place, text + " (" + type.name + ")" + (meant.empty() ? declare : meant));
  }
}

void read_uses(const Reading& reading, const RoleType& type, const SettingsNode& node, RoleSpec& role,
               std::set<std::string>& used_roles) {
  const SettingsNode* table = inner_table(reading, node, "uses");
  if (!table && node.find("uses")) return;
  if (table) report_undeclared(reading, type, *table, role);
  for (const RoleUse& use : type.uses) {
    const SettingsEntry* entry = table ? table->find(use.name) : nullptr;
    if (!entry) {
      if (use.min == 0) continue;
      std::vector<std::string> candidates;
      for (const RoleSpec& other : reading.application.roles) {
        if (other.keys.type == use.role_type) candidates.push_back(other.name);
      }
      reading.diagnostics.error(role.place, "role '" + role.name + "' (" + type.name + ") needs '" + use.name +
                                                "' in [" + table_of(role, "uses") + "]; " +
                                                (candidates.empty() ? "no role is " + with_article(use.role_type)
                                                                    : "candidates: " + base::joined(candidates)));
      continue;
    }
    const auto found = find_used(reading, use, entry->value);
    if (found.empty()) continue;
    check_use(reading, role, use, entry->value, found);
    RoleSpec::Use& read = role.uses.emplace_back(RoleSpec::Use{use.name, {}, entry->key_place});
    for (const auto& [used, place] : found) {
      if (used != &role) used_roles.insert(used->name);
      read.roles.push_back(used->name);
    }
  }
}

/// Returns the configs of the replicas that `type` uses as `use`. A role of another type than the use wants has been
/// reported: its config has another C++ type and is left out.
std::vector<const std::any*> configs_of(const Reading& reading, const RoleType& type, const RoleSpec::Use& use) {
  const auto wanted = std::ranges::find(type.uses, use.name, &RoleUse::name);
  std::vector<const std::any*> configs;
  for (const std::string& name : use.roles) {
    const RoleSpec& used = *reading.application.find_role(name);
    if (used.keys.type != wanted->role_type) continue;
    // A role type without settings has no value for any replica, which counts all the same.
    const RoleType* const used_type = reading.types.find(used.keys.type);
    const bool has_settings = !used_type || used_type->config.make().has_value();
    for (int replica = 0; replica < used.keys.replicas; ++replica) {
      if (!has_settings || used.config_of(replica).has_value()) configs.push_back(&used.config_of(replica));
    }
  }
  return configs;
}

/// Reports what is missing on this machine. With placement "hosts" the role may run on another host, which may have it.
void report_here(const Reading& reading, const SettingsPlace& place, const std::string& text) {
  if (reading.application.run.placement == Placement::hosts) {
    reading.diagnostics.warning(place, text);
  } else {
    reading.local_finding(place, text);
  }
}

void report(const Reading& reading, RoleSpec& role, const SettingsNode& node, const SettingsNode* table,
            const std::vector<MissingRequirement>& missing) {
  using Kind = MissingRequirement::Kind;
  for (const MissingRequirement& requirement : missing) {
    if (requirement.kind == Kind::note) {
      role.notes.push_back(requirement.text);
      continue;
    }
    const SettingsPlace place = place_of(requirement, table, node);
    const std::string text = "role '" + role.name + "': " + requirement.text;
    if (requirement.kind == Kind::file) {
      reading.diagnostics.error(place, text);
    } else if (requirement.kind == Kind::doubt) {
      reading.diagnostics.warning(place, text);
    } else {
      report_here(reading, place, text);
    }
  }
}

}  // namespace

void read_roles(const Reading& reading) {
  const SettingsNode* roles = reading.table("roles");
  if (roles) {
    for (const SettingsEntry& entry : roles->entries) {
      if (!is_unknown_role(reading, *roles, entry)) read_role(reading, entry);
    }
  }
  if (!reading.root.find("roles") || (roles && roles->entries.empty())) {
    reading.diagnostics.error({}, "no roles; each needs a table [roles.NAME] with a type");
  }
  check_worker_names(reading);
}

void check_uses(const Reading& reading) {
  std::set<std::string> used_roles;
  bool all_known = true;
  for (RoleSpec& role : reading.application.roles) {
    const RoleType* type = reading.types.find(role.keys.type);
    const SettingsEntry* entry = reading.root.find("roles")->value.find(role.name);
    if (type) {
      read_uses(reading, *type, entry->value, role, used_roles);
    } else {
      all_known = false;
    }
  }
  // Where a type is unknown, it is unknown which roles its role uses and whether it drives.
  if (!all_known || reading.application.roles.empty()) return;
  for (const RoleSpec& role : reading.application.roles) {
    // After another error, that error may be the reason why no role uses this one.
    if (role.drives || used_roles.contains(role.name) || !reading.diagnostics.ok()) continue;
    reading.diagnostics.warning(role.place, "no role uses '" + role.name + "' and it does not drive the run");
  }
  if (std::ranges::any_of(reading.application.roles, &RoleSpec::drives)) return;
  std::vector<std::string> driving;
  for (const std::string& name : reading.types.names()) {
    if (reading.types.find(name)->drives) driving.push_back(name);
  }
  reading.diagnostics.error(
      {}, "no role drives the run; role types that do: " + (driving.empty() ? "none" : base::joined(driving)));
}

void check_scripts(const Reading& reading) {
  if (!reading.options.requirements || !reading.types.script_check()) return;
  for (const RoleSpec& role : reading.application.roles) {
    for (const bool is_module : {false, true}) {
      for (const RoleSpec::Script& script : is_module ? role.modules : role.scripts) {
        const Result<void> usable = reading.types.script_check()(script.file, is_module);
        if (usable) continue;
        report_here(reading, script.place,
                    "role '" + role.name + "': " + (is_module ? "modules." : "scripts.") + script.name + " = " +
                        quote_toml(script.file.string()) + " " + usable.error().text());
      }
    }
  }
}

void check_requirements(const Reading& reading) {
  if (!reading.options.requirements) return;
  for (RoleSpec& role : reading.application.roles) {
    const RoleType* const type = reading.types.find(role.keys.type);
    if (!type || !type->requirements || !role.config.has_value()) continue;
    RolePlace asked{.role = role.name,
                    .root_seed = static_cast<std::uint64_t>(reading.application.run.seed),
                    .deterministic = reading.application.run.deterministic};
    for (const RoleSpec::Use& use : role.uses) asked.uses[use.name] = configs_of(reading, *type, use);
    const SettingsNode& node = reading.root.find("roles")->value.find(role.name)->value;
    const SettingsEntry* const config = node.find("config");
    const SettingsNode* const table = config ? &config->value : nullptr;
    SettingsNode none;
    for (const auto& [replica, own] : role.configs) {
      if (!own.has_value()) continue;
      const SettingsNode& above = node.find("per_replica")->value.find(std::to_string(replica))->value;
      const SettingsNode both = merge_settings(table ? *table : none, above);
      report(reading, role, node, &both, type->requirements(own, asked));
    }
    const bool is_used = role.configs.size() < static_cast<std::size_t>(role.keys.replicas);
    if (is_used) report(reading, role, node, table, type->requirements(role.config, asked));
  }
}

}  // namespace caftan::app
