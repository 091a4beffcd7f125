#include "caftan/app/role_type.hpp"

#include <algorithm>

#include "caftan/base/internal/read_settings.hpp"
#include "caftan/base/settings_io.hpp"
#include "use_text.hpp"

namespace caftan::app {
namespace {

bool is_type_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

/// Checks the declaration of a type's config: each setting is declared once, an enum has one_of, and the defaults,
/// written as TOML and read back, are accepted.
Result<void> check_declaration(const RoleType& type) {
  std::any config = type.config.make();
  std::vector<SettingField> fields = type.config.bind(config);
  const auto wrong = [&](const SettingField& field, const std::string& what) {
    return Error(Errc::bad_arguments, "role type " + type.name + ": setting " + field.name + " " + what);
  };
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const SettingField& field = fields[i];
    if (field.kind == SettingKind::choice && field.choices.empty()) return wrong(field, "is an enum without one_of");
    if (std::find_if(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(i), [&](const SettingField& other) {
          return other.name == field.name;
        }) != fields.begin() + static_cast<std::ptrdiff_t>(i)) {
      return wrong(field, "is declared twice");
    }
  }
  // A required key has no default to check.
  std::erase_if(fields, [](const SettingField& field) { return field.required; });
  Diagnostics diagnostics(type.name);
  const SettingsNode defaults = parse_settings(dump_settings(fields, ""), diagnostics);
  read_settings(defaults, fields, {}, diagnostics);
  if (!diagnostics.ok()) {
    return Error(Errc::bad_arguments, "role type " + type.name + ": a default is refused by its own declaration: " +
                                          diagnostics.to_error().text());
  }
  return {};
}

}  // namespace

std::string with_article(const std::string& type) {
  return (std::string("aeiouAEIOU").find(type.front()) == std::string::npos ? "a " : "an ") + type;
}

std::string count_text(int min, int max) {
  if (min == max) return "exactly " + std::to_string(min);
  if (max == RoleUse::kAnyNumber) return "at least " + std::to_string(min);
  if (min == 0) return "at most " + std::to_string(max);
  return std::to_string(min) + ".." + std::to_string(max);
}

Result<void> RoleTypes::add(RoleType type) {
  if (!is_type_name(type.name)) {
    return Error(Errc::bad_arguments, "role type '" + type.name + "': a name is made of letters, digits and _ . -");
  }
  if (find(type.name)) return Error(Errc::bad_arguments, "role type '" + type.name + "' is registered twice");
  for (std::size_t i = 0; i < type.uses.size(); ++i) {
    const RoleUse& use = type.uses[i];
    if (!is_type_name(use.name) || use.min < 0 || use.max < use.min || use.max == 0) {
      return Error(Errc::bad_arguments, "role type " + type.name + ": use '" + use.name + "' has no name or no range");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (type.uses[j].name != use.name) continue;
      return Error(Errc::bad_arguments, "role type " + type.name + ": use '" + use.name + "' is declared twice");
    }
  }
  if (auto checked = check_declaration(type); !checked) return checked;
  types_.push_back(std::move(type));
  return {};
}

const RoleType* RoleTypes::find(std::string_view name) const {
  const auto found = std::ranges::find(types_, name, &RoleType::name);
  return found == types_.end() ? nullptr : &*found;
}

RoleType* RoleTypes::find(std::string_view name) {
  const auto found = std::ranges::find(types_, name, &RoleType::name);
  return found == types_.end() ? nullptr : &*found;
}

std::vector<std::string> RoleTypes::names() const {
  std::vector<std::string> names;
  for (const RoleType& type : types_) names.push_back(type.name);
  std::ranges::sort(names);
  return names;
}

std::string help_role_type(const RoleType& type) {
  std::string text = type.name;
  if (!type.doc.empty()) text += ": " + type.doc;
  text += type.drives ? "\n(drives the run: it ends when all roles that drive have returned)\n" : "\n";
  text += "\n[roles.NAME]\ntype = " + quote_toml(type.name) + "\n";
  std::any config = type.config.make();
  const std::vector<SettingField> fields = type.config.bind(config);
  if (!fields.empty()) text += "\n[roles.NAME.config]\n" + help_settings(fields, "roles.NAME.config");
  if (!type.uses.empty()) text += "\n[roles.NAME.uses]\n";
  for (const RoleUse& use : type.uses) {
    text += use.name + " = \"ROLE\"  # a role, or a list of roles, of type " + use.role_type + ", " +
            count_text(use.min, use.max) + (use.min == 0 ? "; may be left out\n" : "; required\n");
  }
  return text;
}

std::string list_role_types(const RoleTypes& types) {
  std::size_t width = 0;
  for (const std::string& name : types.names()) width = std::max(width, name.size());
  std::string text;
  for (const std::string& name : types.names()) {
    const RoleType& type = *types.find(name);
    std::string note = type.doc;
    if (type.drives) note += note.empty() ? "drives the run" : "; drives the run";
    text += name;
    if (!note.empty()) text += std::string(width - name.size() + 2, ' ') + note;
    text += "\n";
  }
  return text;
}

}  // namespace caftan::app
