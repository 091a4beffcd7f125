// [permissions] and [permissions.NAME]: the rules, what is wrong with them, and uses that they forbid.
#include <algorithm>

#include "application_reader.hpp"
#include "caftan/base/internal/name_pattern.hpp"

namespace caftan::app {
namespace {

using Rule = RolePermissions::Rule;

/// The one function of Caftan's services that a rule may name: it makes modules of [roles.NAME.modules].
constexpr std::string_view kMakesModule = "caftan.script_module";

std::vector<std::string> role_names(const Reading& reading) {
  std::vector<std::string> names;
  for (const RoleSpec& role : reading.application.roles) names.push_back(role.name);
  return names;
}

bool names(const std::optional<Rule>& rule, const std::string& name) {
  return rule && std::ranges::find(rule->names, name) != rule->names.end();
}

/// Returns the place of each name of the list `key`, which was read without errors.
std::vector<SettingsPlace> places_of(const SettingsNode& table, const std::string& key) {
  std::vector<SettingsPlace> places;
  for (const SettingsNode& item : table.find(key)->value.items) places.push_back(item.place);
  return places;
}

/// Reports names that are no role, that stand twice, and that can never match.
void check_role_list(const Reading& reading, const RoleSpec& role, const SettingsNode& table, const std::string& key,
                     const Rule& rule) {
  const std::vector<SettingsPlace> places = places_of(table, key);
  for (std::size_t i = 0; i < rule.names.size(); ++i) {
    const std::string& name = rule.names[i];
    const RoleSpec* const named = reading.application.find_role(name);
    if (!named) {
      reading.diagnostics.error(places[i], key + ": no role '" + name + "'" + did_you_mean(name, role_names(reading)));
    } else if (std::ranges::find(rule.names, name) - rule.names.begin() < static_cast<std::ptrdiff_t>(i)) {
      reading.diagnostics.error(places[i], key + " names role '" + name + "' twice");
    } else if (named == &role && role.keys.replicas == 1) {
      reading.diagnostics.warning(places[i], key + ": '" + name +
                                                 "' can never match: the role has one worker, which may do everything "
                                                 "at itself");
    }
  }
}

/// The names that a rule may have.
struct Functions {
  std::vector<std::string> all;      ///< what the program has registered
  std::vector<std::string> here;     ///< of these, all but the methods of roles that the file does not have
  std::vector<std::string> scripts;  ///< how methods of scripts begin, "policy.": the rest is in the script
};

Functions list_functions(const Reading& reading) {
  Functions functions;
  for (std::string& name : reading.types.functions()()) {
    if (!name.starts_with("caftan.")) functions.all.push_back(std::move(name));
  }
  for (const std::string& name : functions.all) {
    bool is_here = true;
    for (const RoleType& type : reading.types.all()) {
      if (!base::is_method_of(type.name, name)) continue;
      is_here = std::ranges::any_of(reading.application.roles,
                                    [&type](const RoleSpec& role) { return role.keys.type == type.name; });
      if (is_here) break;
    }
    if (is_here) functions.here.push_back(name);
  }
  for (const RoleSpec& role : reading.application.roles) {
    for (const RoleSpec::Script& script : role.scripts) functions.scripts.push_back(script.name + ".");
  }
  return functions;
}

/// Reports patterns that no function has, and those that can never match.
void check_functions(const Reading& reading, const SettingsNode& table, const Rule& rule) {
  if (!reading.types.functions()) return;
  const Functions functions = list_functions(reading);
  const std::vector<SettingsPlace> places = places_of(table, "functions");
  for (std::size_t i = 0; i < rule.names.size(); ++i) {
    const std::string& pattern = rule.names[i];
    const auto fits = [&pattern](const std::string& name) { return base::matches(pattern, name); };
    const bool is_script = std::ranges::any_of(functions.scripts, [&pattern](const std::string& script) {
      return pattern.starts_with(script) || base::matches(pattern, script);
    });
    const std::vector<std::string> before(rule.names.begin(), rule.names.begin() + static_cast<std::ptrdiff_t>(i));
    if (pattern == kMakesModule) continue;
    if (pattern.starts_with("caftan.")) {
      reading.diagnostics.error(places[i], "functions: '" + pattern +
                                               "' belongs to Caftan, whose services need no permission; name functions "
                                               "of the program");
    } else if (!is_script && std::ranges::none_of(functions.all, fits)) {
      reading.diagnostics.error(places[i], "functions: nothing is registered as '" + pattern + "' in this program" +
                                               did_you_mean(pattern, functions.all));
    } else if (!is_script && std::ranges::none_of(functions.here, fits)) {
      reading.diagnostics.warning(places[i],
                                  "functions: '" + pattern + "' can never match: no role of this file has that method");
    } else if (base::matches_any(before, pattern)) {
      reading.diagnostics.warning(
          places[i], "functions: '" + pattern + "' can never match: what stands before it allows the same");
    }
  }
}

/// Returns whether the rule names a method of that role type.
bool names_method(const Reading& reading, const Rule& functions, const std::string& type) {
  const auto registered = reading.types.functions() ? reading.types.functions()() : std::vector<std::string>();
  return std::ranges::any_of(registered, [&](const std::string& name) {
    return base::is_method_of(type, name) && base::matches_any(functions.names, name);
  });
}

/// Reports uses that the rules of the role forbid, and roles that it may call but not refer to.
void check_forbidden(const Reading& reading, const RoleSpec& role, const RolePermissions& rules) {
  const auto table = "[permissions." + role.name + "] ";
  const auto forbidden = [&](const char* key, const Rule& rule, const RoleSpec::Use& use, const std::string& used) {
    reading.diagnostics.error(rule.place, table + key + " forbids uses." + use.name + " = " + quote_toml(used) +
                                              line_text(use.place) + " of role '" + role.name + "': add " +
                                              quote_toml(used));
  };
  for (const RoleSpec::Use& use : role.uses) {
    for (const std::string& used : use.roles) {
      const std::string& type = reading.application.find_role(used)->keys.type;
      if (rules.roles && !names(rules.roles, used) &&
          !(rules.functions && names_method(reading, *rules.functions, type))) {
        forbidden("roles", *rules.roles, use, used);
      }
      if (rules.references && !names(rules.references, used)) forbidden("references", *rules.references, use, used);
    }
  }
  if (!rules.roles || !rules.references) return;
  for (const std::string& name : rules.roles->names) {
    if (names(rules.references, name) || !reading.application.find_role(name)) continue;
    reading.diagnostics.warning(rules.roles->place, "roles: '" + name +
                                                        "' can never match: a method needs a reference, and " + table +
                                                        "references does not name the role");
  }
}

void read_rules(const Reading& reading, const SettingsEntry& entry) {
  const RoleSpec* const role = reading.application.find_role(entry.key);
  if (!role) {
    return reading.diagnostics.error(entry.key_place, "[permissions." + entry.key + "]: no role '" + entry.key + "'" +
                                                          did_you_mean(entry.key, role_names(reading)));
  }
  RolePermissionKeys keys;
  std::vector<SettingField> fields = bind_settings(keys);
  ReadSettings options;
  options.table = "permissions." + entry.key;
  const std::size_t before = reading.diagnostics.errors();
  read_settings(entry.value, fields, options, reading.diagnostics);
  if (reading.diagnostics.errors() != before) return;
  RolePermissions rules{.role = role->name, .place = entry.value.place};
  const auto take = [&entry](const char* key, std::vector<std::string>& list, std::optional<Rule>& rule) {
    if (const SettingsEntry* const found = entry.value.find(key)) rule = {std::move(list), found->key_place};
  };
  take("functions", keys.functions, rules.functions);
  take("roles", keys.roles, rules.roles);
  take("operators", keys.operators, rules.operators);
  take("references", keys.references, rules.references);
  if (entry.value.entries.empty()) {
    reading.diagnostics.warning(entry.value.place, "[permissions." + entry.key + "] has no rule: the default decides");
  }
  if (rules.functions) check_functions(reading, entry.value, *rules.functions);
  if (rules.roles) check_role_list(reading, *role, entry.value, "roles", *rules.roles);
  if (rules.operators) check_role_list(reading, *role, entry.value, "operators", *rules.operators);
  if (rules.references) check_role_list(reading, *role, entry.value, "references", *rules.references);
  if (reading.diagnostics.errors() == before) check_forbidden(reading, *role, rules);
  reading.application.role_permissions.push_back(std::move(rules));
}

}  // namespace

void read_permissions(const Reading& reading) {
  const SettingsNode* const table = reading.table("permissions");
  if (!table) return;
  std::vector<SettingField> fields = bind_settings(reading.application.permissions);
  ReadSettings options;
  options.table = "permissions";
  for (const SettingsEntry& entry : table->entries) {
    if (entry.value.kind != SettingsNode::Kind::table || entry.key == "default") continue;
    options.other_keys.push_back(entry.key);
  }
  read_settings(*table, fields, options, reading.diagnostics);
  for (const SettingsEntry& entry : table->entries) {
    if (entry.value.kind == SettingsNode::Kind::table && entry.key != "default") read_rules(reading, entry);
  }
}

}  // namespace caftan::app
