/// The command `sweep`: runs the application once for each combination of values, each run as the command `run` in a
/// process of its own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"

namespace caftan::actors {

struct SweepOptions {
  const app::RoleTypes& types;
  std::string executable{};  ///< of this program
  std::filesystem::path file{};
  std::vector<std::string> assignments{};      ///< key=1..10, key=a,b, key=value
  int jobs = 1;                                ///< runs at a time
  std::optional<std::filesystem::path> out{};  ///< the sweep's folder; empty = a new one in output.dir
  std::optional<std::string> metric{};         ///< the metric that the table shows; empty = all
};

/// Checks all runs, then carries out those that have not succeeded in the sweep's folder yet, and prints the table.
/// SIGINT, SIGTERM and SIGHUP are taken over meanwhile: the first ends the runs cleanly, the second at once.
/// Returns the exit code: 0 success, 1 a run failed, 2 bad command line, file or folder, 130 interrupted.
/// Threads: the main thread; no other may have been started. Blocks.
int run_sweep(const SweepOptions& options);

}  // namespace caftan::actors
