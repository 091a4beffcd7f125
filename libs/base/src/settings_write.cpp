#include <algorithm>

#include "caftan/base/settings_io.hpp"
#include "settings_limits.hpp"

namespace caftan {
namespace {

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string table_name(std::string_view prefix, const SettingField& field) {
  return prefix.empty() ? field.name : std::string(prefix) + "." + field.name;
}

std::string type_text(const SettingField& field) {
  switch (field.kind) {
    case SettingKind::boolean:
      return "true or false";
    case SettingKind::integer:
      return "integer";
    case SettingKind::number:
      return "number";
    case SettingKind::choice:
    case SettingKind::text:
      return "string";
    case SettingKind::duration:
      return "duration";
    case SettingKind::bytes:
      return "size";
    case SettingKind::path:
      return "path";
    case SettingKind::texts:
      return "list of strings";
    case SettingKind::integers:
      return "list of integers";
    case SettingKind::table:
      return "table";
  }
  return "";
}

/// Returns the choices of a setting, or its unit and range, as `explain` and the reference show them beside the doc.
std::string accepts_text(const SettingField& field, bool notes) {
  if (!field.choices.empty()) return choices_text(field, notes);
  const std::string range = range_text(field);
  if (field.unit.empty() || range.empty()) return field.unit + range;
  return field.unit + ", " + range;
}

std::string default_of(const SettingField& field) {
  return field.default_text.empty() ? plain_text(field) : field.default_text;
}

std::string markdown_cell(std::string text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string dump_settings(const std::vector<SettingField>& fields,
                          std::string_view prefix) {  // NOLINT(misc-no-recursion)
  std::string result;
  for (const SettingField& field : fields) {
    if (field.kind == SettingKind::table) continue;
    const SettingValue value = field.get();
    if (std::holds_alternative<std::monostate>(value)) {
      result += "# " + field.name + ": " + default_of(field) + "\n";
    } else {
      result += field.name + " = " + value_text(field, value) + "\n";
    }
  }
  for (const SettingField& field : fields) {
    if (field.kind != SettingKind::table) continue;
    const std::string name = table_name(prefix, field);
    result += "\n[" + name + "]\n" + dump_settings(field.fields, name);
  }
  return result;
}

std::string explain_setting(const SettingField& field) {
  std::string result = field.doc;
  const std::string accepts = accepts_text(field, true);
  if (!accepts.empty()) result += (field.choices.empty() ? ", " : ": ") + accepts;
  return result + (field.required ? "; required" : "; default " + default_of(field));
}

std::string help_settings(const std::vector<SettingField>& fields,
                          std::string_view prefix) {  // NOLINT(misc-no-recursion)
  std::vector<std::pair<std::string, std::string>> lines;
  std::size_t key_width = 0;
  std::size_t width = 0;
  for (const SettingField& field : fields) {
    if (field.kind != SettingKind::table) key_width = std::max(key_width, field.name.size());
  }
  for (const SettingField& field : fields) {
    if (field.kind == SettingKind::table) continue;
    const SettingValue value = field.get();
    const bool empty = std::holds_alternative<std::monostate>(value);
    std::string line = empty ? "# " + field.name : padded(field.name, key_width) + " = " + value_text(field, value);
    if (field.required && !empty) line = "# " + field.name;
    width = std::max(width, line.size());
    lines.emplace_back(std::move(line), explain_setting(field));
  }
  std::string result;
  for (auto& [line, text] : lines) result += padded(line, width) + "  # " + text + "\n";
  for (const SettingField& field : fields) {
    if (field.kind != SettingKind::table) continue;
    const std::string name = table_name(prefix, field);
    result += "[" + name + "]  # " + field.doc + "\n" + help_settings(field.fields, name);
  }
  return result;
}

std::string markdown_settings(const std::vector<SettingField>& fields,
                              std::string_view prefix) {  // NOLINT(misc-no-recursion)
  std::string result;
  for (const SettingField& field : fields) {
    if (field.kind == SettingKind::table) continue;
    if (result.empty()) result = "| key | type | accepts | default | meaning |\n|---|---|---|---|---|\n";
    result += "| `" + field.name + "` | " + type_text(field) + " | " + markdown_cell(accepts_text(field, true)) +
              " | " + (field.required ? "required" : markdown_cell(default_of(field))) + " | " +
              markdown_cell(field.doc) + " |\n";
  }
  for (const SettingField& field : fields) {
    if (field.kind != SettingKind::table) continue;
    const std::string name = table_name(prefix, field);
    result += "\n`[" + name + "]`: " + field.doc + "\n\n" + markdown_settings(field.fields, name);
  }
  return result;
}

std::size_t count_settings(const std::vector<SettingField>& fields) {  // NOLINT(misc-no-recursion)
  std::size_t count = 0;
  for (const SettingField& field : fields) {
    count += field.kind == SettingKind::table ? count_settings(field.fields) : 1;
  }
  return count;
}

}  // namespace caftan
