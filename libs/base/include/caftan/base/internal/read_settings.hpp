/// Reads declared settings (settings.hpp): from a parsed table (settings_document.hpp) into fields, with every error
/// located.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "caftan/base/internal/settings_document.hpp"
#include "caftan/base/settings.hpp"
#include "caftan/base/settings_diagnostics.hpp"

namespace caftan {

/// How a table is read, and what messages call it.
struct ReadSettings {
  std::string table{};           ///< the table's name in the file, for example "roles.agent.config"; "" = top level
  std::string owner{};           ///< the name of the owner of the keys, for example "cartpole.agent"; may be empty
  std::filesystem::path base{};  ///< what path settings are relative to
  std::vector<std::string> other_keys{};  ///< keys of the table that are known but read elsewhere
  std::string help{};                     ///< a command that lists the keys, for the hint of an unknown one
};

/// Reads `table` into `fields`. Unknown keys, missing required ones, wrong types, values out of range: all of them are
/// reported, and a field with an error keeps its value.
void read_settings(const SettingsNode& table, std::vector<SettingField>& fields, const ReadSettings& options,
                   Diagnostics& diagnostics);

}  // namespace caftan
