/// What two hosts compare before they run parts of one application: a digest of each table of its settings. Start with
/// `settings_digest`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caftan/app/application.hpp"
#include "caftan/app/role_type.hpp"
#include "caftan/base/result.hpp"

namespace caftan::app {

/// Returns words "run=0f3a9c51 cluster=... limits=... hosts=... roles.agent=...", at most 255 bytes; where the roles do
/// not fit one by one, a single "roles=...". Left out is what belongs to one host: [output], addresses, paths, and how
/// long its launcher waits (`start_timeout`, `stop_timeout`). Not a secret and no proof, only against mistakes.
/// Precondition: the application was loaded with `types` without errors.
/// Threads: any.
std::string settings_digest(const Application& application, const RoleTypes& types);

/// Returns the tables in which two digests differ: "run", "roles.agent", "roles" where not both list the roles one by
/// one. Empty is possible for texts that are not from `settings_digest`.
/// Threads: any.
std::vector<std::string> differing_tables(std::string_view one, std::string_view other);

/// A worker's name and the digest of the settings from which it was started.
struct WorkerSettings {
  std::string_view worker;  ///< its name
  std::string_view digest;  ///< empty: the worker says nothing of its settings
};
/// Checks that a peer was started from the same settings as this worker; where one of them says nothing, they are not
/// compared. Errors: invalid_config, which begins with the tables that differ.
/// Threads: any.
Result<void> check_same_settings(const WorkerSettings& self, const WorkerSettings& peer);

}  // namespace caftan::app
