/// Runs an application: starts its workers where the file places them, shows and records their reports, and ends all
/// of them in every case. The Supervisor decides what to do next; the launcher does it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "caftan/actors/role_catalog.hpp"
#include "caftan/app/internal/application.hpp"
#include "caftan/app/internal/plan.hpp"
#include "launch/run_process.hpp"

namespace caftan::actors {

struct LaunchOptions {
  const RoleCatalog& catalog;
  const app::RoleTypes& types;
  const app::Application& application;
  const app::Plan& plan;
  WorkerMain worker_main{};
  std::vector<WorkerId> workers{};  ///< the workers to run here: all, or with placement "hosts" those of this host
  std::string executable{};         ///< path of this program
  bool by_ssh = false;              ///< starts the workers of other hosts than the first one by ssh
  std::string warnings{};           ///< warnings about the file, for people; whole lines
};

struct LaunchOutcome {
  int exit_code = 0;
  /// User code still runs on threads of this process, which therefore must exit without unwinding.
  bool must_exit = false;
};

/// Runs until the application has ended and nothing of it is left. SIGINT, SIGTERM and SIGHUP are taken over meanwhile:
/// the first ends the run cleanly, the second at once. Everything is reported on standard output and error.
/// Threads: the main thread; no other may have been started. Blocks.
LaunchOutcome launch(const LaunchOptions& options);

}  // namespace caftan::actors
