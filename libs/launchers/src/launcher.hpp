/// `Launcher`: how one kind of launcher describes its processes by variables. To add a kind, add a folder beside this
/// file with a Launcher, a line in launchers.cpp, and a choice of run.launcher.
#pragma once

#include <optional>
#include <string>

#include "caftan/launchers/internal/slot.hpp"

namespace caftan::launchers {

struct Launcher {
  const char* name;  ///< in run.launcher
  app::LauncherChoice choice;
  /// Returns whether a launcher of this kind has started the process.
  bool (*is_here)(const Environment& environment);
  /// Returns the slot of the process. Errors: invalid_config.
  Result<Slot> (*find)(const Environment& environment);
  /// Returns how many slots there are in the allocation in which the process runs, also if it has no slot itself;
  /// nothing outside of an allocation.
  std::optional<int> (*offered)(const Environment& environment);
  /// Returns the command that starts that many slots, for people.
  std::string (*command)(int slots);
};

extern const Launcher kVariables;
extern const Launcher kMpi;
extern const Launcher kSlurm;

/// Returns rank and size from two variables. Errors: invalid_config.
Result<Slot> ranked(const Environment& environment, const char* launcher, const char* rank, const char* size);

/// Fills in MASTER_ADDR and MASTER_PORT where they are set. Errors: invalid_config.
Result<void> take_master(const Environment& environment, Slot& slot);

/// Returns a port from 20000 to 29999 for a job, the same in all of its processes. Jobs of other names may have it,
/// too.
std::uint16_t port_for(std::string_view job);

}  // namespace caftan::launchers
