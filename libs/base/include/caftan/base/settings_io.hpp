/// Reads, writes and explains declared settings (settings.hpp): from a parsed table into fields with every error
/// located, and from fields to TOML, to help text and to the reference page.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/base/settings.hpp"
#include "caftan/base/settings_document.hpp"

namespace caftan {

/// How a table is read, and by which name messages call it.
struct ReadSettings {
  std::string table{};                    ///< its name in the file, for example "roles.agent.config"; "" = top level
  std::string owner{};                    ///< whose keys these are, for example "cartpole.agent"; may be empty
  std::filesystem::path base{};           ///< what path settings are relative to
  std::vector<std::string> other_keys{};  ///< keys that are known but read elsewhere
  std::string help{};                     ///< a command that lists the keys, for the hint of an unknown one
};

/// Reads `table` into `fields`. Unknown keys, missing required ones, wrong types, values out of range: all of them are
/// reported, and a field with an error keeps its value.
void read_settings(const SettingsNode& table, std::vector<SettingField>& fields, const ReadSettings& options,
                   Diagnostics& diagnostics);

/// Returns `key = value` lines in the order of declaration, then sub-tables as [prefix.name]. An empty optional
/// becomes a comment. Reading the text again gives the same values.
std::string dump_settings(const std::vector<SettingField>& fields, std::string_view prefix);

/// Returns one field for people: doc, choices or range, unit, then "required" or the default.
std::string explain_setting(const SettingField& field);
/// Returns commented TOML with all defaults, sub-tables as [prefix.name].
std::string help_settings(const std::vector<SettingField>& fields, std::string_view prefix);
/// Returns a Markdown table of the fields (key, type, default, range, meaning), then sub-tables with their heading.
std::string markdown_settings(const std::vector<SettingField>& fields, std::string_view prefix);
/// Returns the number of keys, those of sub-tables included.
std::size_t count_settings(const std::vector<SettingField>& fields);

/// Returns "250ms", "2s", "10min", "1h": the largest unit that gives a whole number.
std::string format_duration(std::int64_t nanoseconds);
/// Returns "64MiB", "100B".
std::string format_bytes(std::int64_t bytes);
/// Returns the nanoseconds of a text such as "250ms" or "1.5h".
/// Errors: invalid_config (not a number with a unit, a part of a nanosecond), limit_exceeded (over 292 years,
/// negative).
Result<std::int64_t> parse_duration(std::string_view text);
/// Returns the bytes of a text such as "64MiB".
/// Errors: invalid_config (not a number with a unit, a part of a byte), limit_exceeded (over 2^63-1, negative).
Result<std::int64_t> parse_bytes(std::string_view text);
/// Returns the shortest text that reads back as the same number and is a TOML float.
std::string format_number(double value);
/// Returns the number with `decimals` digits after the point, for people.
std::string format_fixed(double value, int decimals);
/// Returns the number with at most `digits` significant digits, for people: "475", "0.002", "1e+30".
std::string format_digits(double value, int digits = 6);
/// Returns the text with '?' for control characters: what a file says must not move the cursor of a terminal.
std::string printable(std::string_view text);
/// Returns the text as a TOML basic string, quoted and escaped.
std::string quote_toml(std::string_view text);

}  // namespace caftan
