/// A parsed settings file: tables, values and where each stands, in the order of the file. Start with
/// `parse_settings`; `apply_override` puts a `key=value` of the command line into it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "caftan/base/settings_diagnostics.hpp"

namespace caftan {

struct SettingsEntry;

/// A value of the file. Tables keep their entries in the order of their keys' places, overrides last.
struct SettingsNode {
  /// The kinds of TOML values, as far as settings distinguish them.
  enum class Kind { boolean, integer, number, text, date, list, table };

  Kind kind = Kind::table;
  SettingsPlace place;  ///< the place of the value; of a table, the place of its header
  std::variant<std::monostate, bool, std::int64_t, double, std::string> scalar;  ///< of a date its text
  std::vector<SettingsNode> items;                                               ///< of a list
  std::vector<SettingsEntry> entries;                                            ///< of a table

  /// Returns the entry of `key`; null if this is no table or has no such key.
  const SettingsEntry* find(std::string_view key) const;
  /// Returns the value for a message: `the integer 10`, `the string "a"`, `a list`.
  std::string describe() const;
};

/// One key of a table with its value.
struct SettingsEntry {
  std::string key;
  SettingsPlace key_place;
  SettingsNode value;
};

/// Parses TOML 1.0 text. A syntax error becomes one diagnostic with the parser's own text and the result is an empty
/// table.
SettingsNode parse_settings(std::string_view text, Diagnostics& diagnostics);

/// Returns `below` with what stands in `above`: tables are merged key by key, on all levels; any other value of `above`
/// replaces that of `below` as a whole, also a list.
SettingsNode merge_settings(SettingsNode below, const SettingsNode& above);

/// Sets `assignment`, for example `roles.observer.replicas=4`, creating tables on the way. A value that is no TOML
/// value and is made of letters, digits and `_ . / : + - ~` is taken as a string. A table,
/// `roles.observer={replicas=4}`, sets the keys that it names and leaves the others (`merge_settings`). A later
/// override of a key replaces an earlier one.
/// @param index  its number among the overrides, for places
void apply_override(SettingsNode& root, std::string_view assignment, int index, Diagnostics& diagnostics);

}  // namespace caftan
