/// Makes a checked `Application` of a file and overrides. Nothing is created, started or written.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "caftan/app/application.hpp"
#include "caftan/app/role_type.hpp"

namespace caftan::app {

/// How findings that depend on this machine (data, secret file, output folder) count: as warnings in `check`, as errors
/// in `run`.
enum class LoadMode { check, run };

/// How a file is loaded.
struct LoadOptions {
  LoadMode mode = LoadMode::run;
  int cores = 0;  ///< cores of this machine; 0 = ask the operating system
  /// Look at the output folder and ask what roles need on this machine; a worker's process does not do so again.
  bool requirements = true;
};

/// The result of reading a file: the application, and all errors and warnings.
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

/// As load_application, for a text that is already in memory.
/// @param file  the text's file name; paths in the text are relative to its folder
LoadedApplication parse_application(std::string_view text, const std::filesystem::path& file,
                                    std::span<const std::string> overrides, const RoleTypes& types,
                                    const LoadOptions& options);

}  // namespace caftan::app
