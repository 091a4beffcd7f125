// The version, and the tables that are the same in every application: [run], [cluster], [limits], [output].
#include <algorithm>

#include "application_reader.hpp"
#include "caftan/app/internal/run_directory.hpp"

namespace caftan::app {
namespace {

template <class Settings>
void read_table(const Reading& reading, const std::string& name, Settings& settings) {
  const SettingsNode* table = reading.table(name);
  if (!table) return;
  std::vector<SettingField> fields = bind_settings(settings);
  ReadSettings options;
  options.table = name;
  options.base = reading.application.file.parent_path();
  read_settings(*table, fields, options, reading.diagnostics);
}

void check_run_name(const Reading& reading) {
  const std::string& name = reading.application.run.name;
  const bool good = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  const SettingsNode* value = reading.value("run", "name");
  if (!value) return;
  if (good && name.front() == '-') {
    reading.diagnostics.error(value->place, "name must begin with a letter or digit, is " + quote_toml(name) +
                                                ": commands would take the run's folder for an option");
  }
  if (good) return;
  reading.diagnostics.error(value->place, "name must be a-z 0-9 -, 1..64 characters, is " + quote_toml(name));
}

/// Reports tables such as [agent.config] where [roles.agent.config] is meant, with the right name, and adds their keys
/// to `known`, so that they are not reported again.
void find_misplaced_roles(const Reading& reading, std::vector<std::string>& known) {
  const SettingsEntry* const roles = reading.root.find("roles");
  for (const SettingsEntry& entry : reading.root.entries) {
    if (std::ranges::find(known, entry.key) != known.end() || entry.value.kind != SettingsNode::Kind::table) continue;
    const bool is_role = roles && roles->value.find(entry.key);
    const bool has_keys = entry.value.find("type") || entry.value.find("config") || entry.value.find("uses");
    if (!is_role && !has_keys) continue;
    const std::string inner = entry.value.entries.size() == 1 ? "." + entry.value.entries.front().key : "";
    reading.diagnostics.error(
        entry.key_place,
        "unknown key '" + entry.key + "': a role stands below [roles]; write [roles." + entry.key + inner + "]");
    known.push_back(entry.key);
  }
}

/// Checks the output folder, which is on this machine whatever the placement.
void check_output_dir(const Reading& reading) {
  if (!reading.options.requirements) return;
  const std::string& dir = reading.application.output.dir;
  const auto usable = RunDirectory::check(dir);
  if (usable) return;
  const SettingsNode* const given = reading.value("output", "dir");
  reading.local_finding(given ? given->place : SettingsPlace{},
                        "output.dir " + quote_toml(dir) + ": " + usable.error().text());
}

}  // namespace

const SettingsNode* Reading::table(std::string_view key) const {
  const SettingsEntry* entry = root.find(key);
  if (!entry) return nullptr;
  if (entry->value.kind == SettingsNode::Kind::table) return &entry->value;
  diagnostics.error(entry->value.place, entry->key + " must be a table, is " + entry->value.describe());
  return nullptr;
}

const SettingsNode* Reading::value(std::string_view table, std::string_view key) const {
  const SettingsEntry* outer = root.find(table);
  const SettingsEntry* inner = outer ? outer->value.find(key) : nullptr;
  return inner ? &inner->value : nullptr;
}

bool read_version(const Reading& reading) {
  const SettingsEntry* entry = reading.root.find("caftan");
  if (!entry) {
    reading.diagnostics.error({.line = 1, .column = 1},
                              "missing key 'caftan', the version of the schema; add: caftan = 1");
    return true;
  }
  const SettingsNode& value = entry->value;
  if (value.kind != SettingsNode::Kind::integer) {
    reading.diagnostics.error(value.place, "caftan must be the integer 1, is " + value.describe());
    return true;
  }
  const auto version = std::get<std::int64_t>(value.scalar);
  if (version == kSchemaVersion) return true;
  std::string text = "caftan must be 1, is " + std::to_string(version);
  if (version > kSchemaVersion) {
    text += ": this Caftan reads schema 1; schema " + std::to_string(version) + " is read by a later one";
  }
  reading.diagnostics.error(value.place, text);
  return false;
}

void read_tables(const Reading& reading) {
  ReadSettings top;
  top.other_keys = {"caftan", "run", "roles", "cluster", "hosts", "permissions", "tls", "limits", "output"};
  std::vector<SettingField> none;
  find_misplaced_roles(reading, top.other_keys);
  read_settings(reading.root, none, top, reading.diagnostics);
  Application& application = reading.application;
  read_table(reading, "run", application.run);
  read_table(reading, "cluster", application.cluster);
  read_table(reading, "tls", application.tls);
  read_table(reading, "limits", application.limits);
  read_table(reading, "output", application.output);
  check_run_name(reading);
  if (const SettingsNode* spin = reading.value("cluster", "spin")) {
    const auto choice = spin_choice(application.cluster.spin);
    if (!choice) reading.diagnostics.error(spin->place, choice.error().text());
  }
  const std::size_t before = reading.diagnostics.errors();
  if (const SettingsNode* dir = reading.value("output", "dir")) {
    const std::string& path = application.output.dir;
    if (path.empty()) reading.diagnostics.error(dir->place, "dir must not be empty");
    // The path is printed on the terminal, where a control character would move the cursor.
    if (std::ranges::any_of(path, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
      reading.diagnostics.error(dir->place, "dir must be a path without control characters, is " + quote_toml(path));
    }
  }
  if (reading.diagnostics.errors() == before) check_output_dir(reading);
}

std::string line_text(const SettingsPlace& place) {
  if (place.override_index >= 0) return " (command line)";
  return " (line " + std::to_string(place.line) + ")";
}

}  // namespace caftan::app
