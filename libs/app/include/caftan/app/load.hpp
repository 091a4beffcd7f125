/// From a file and overrides to a checked `Application`. Nothing is created, started or written.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "caftan/app/application.hpp"
#include "caftan/app/role_type.hpp"

namespace caftan::app {

/// What depends on this machine (data, secret file, output folder) is a warning in `check` and an error in `run`.
enum class LoadMode { check, run };

/// How a file is loaded.
struct LoadOptions {
  LoadMode mode = LoadMode::run;
  int cores = 0;  ///< of this machine; 0 = ask the operating system
  /// Look at the output folder and ask what roles need on this machine; a worker's process does not do so again.
  bool requirements = true;
};

/// What became of a file: the application, and all that is wrong with it.
struct LoadedApplication {
  Application application;  ///< complete only if diagnostics.ok()
  Diagnostics diagnostics;
};

/// A larger file is refused unread: no application file is that long.
inline constexpr std::size_t kMaxFileBytes = 1 << 20;

/// Reads and checks an application file. All errors are in the diagnostics, nothing is thrown.
/// @param overrides  "key=value" from the command line, applied in their order
LoadedApplication load_application(const std::filesystem::path& file, std::span<const std::string> overrides,
                                   const RoleTypes& types, const LoadOptions& options);

/// The same for a text that is already in memory. @param file  its name, and what paths in it are relative to
LoadedApplication parse_application(std::string_view text, const std::filesystem::path& file,
                                    std::span<const std::string> overrides, const RoleTypes& types,
                                    const LoadOptions& options);

}  // namespace caftan::app
