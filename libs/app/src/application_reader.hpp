/// The steps of reading an application file, in their order. Each step reports the errors that it finds and continues,
/// so that a user sees all errors at once.
#pragma once

#include <string>

#include "caftan/app/internal/load.hpp"
#include "caftan/base/internal/read_settings.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::app {

/// What all steps share.
struct Reading {
  const SettingsNode& root;
  const RoleTypes& types;
  const LoadOptions& options;
  Application& application;
  Diagnostics& diagnostics;

  /// Reports a finding that depends on this machine: a warning in `check`, an error in `run`.
  void local_finding(const SettingsPlace& place, std::string text) const {
    if (options.mode == LoadMode::run) return diagnostics.error(place, std::move(text));
    diagnostics.warning(place, std::move(text));
  }
  /// Returns the table `key` of the root, or null if it is missing; reports a value that is no table.
  const SettingsNode* table(std::string_view key) const;
  /// Returns the value of `table.key` in the file, or null.
  const SettingsNode* value(std::string_view table, std::string_view key) const;
};

/// Returns false if the file names another schema version than kSchemaVersion: nothing else of the file can be judged
/// then.
bool read_version(const Reading& reading);
void read_tables(const Reading& reading);
void read_roles(const Reading& reading);
void check_uses(const Reading& reading);
void read_permissions(const Reading& reading);
void check_requirements(const Reading& reading);
void check_scripts(const Reading& reading);
void read_hosts(const Reading& reading);
void check_placement(const Reading& reading);
void check_cores(const Reading& reading);
void check_torch_threads(const Reading& reading);
void check_on_loss(const Reading& reading);

/// Returns " (line 7)" or " (command line)".
std::string line_text(const SettingsPlace& place);

}  // namespace caftan::app
