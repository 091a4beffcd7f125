#include <algorithm>
#include <array>

#include "launcher.hpp"

namespace caftan::launchers {
namespace {

/// In the order of LauncherChoice::automatic: `torchrun` and scripts run inside of what the others start, and `mpirun`
/// inside of an allocation of Slurm.
constexpr std::array<const Launcher*, 3> kLaunchers{&kVariables, &kMpi, &kSlurm};

const Launcher* launcher_of(app::LauncherChoice choice, const Environment& environment) {
  const auto found = std::ranges::find_if(kLaunchers, [&](const Launcher* launcher) {
    return choice == app::LauncherChoice::automatic ? launcher->is_here(environment) : launcher->choice == choice;
  });
  return found == kLaunchers.end() ? nullptr : *found;
}

std::string count_of_slots(int count) { return std::to_string(count) + (count == 1 ? " process" : " processes"); }

}  // namespace

Result<Slot> find_slot(app::LauncherChoice choice, const Environment& environment) {
  if (const Launcher* launcher = launcher_of(choice, environment)) return launcher->find(environment);
  return Error(
      Errc::invalid_config,
      "run.launcher = \"auto\": no launcher has started this process: neither RANK, WORLD_SIZE, MASTER_ADDR and "
      "MASTER_PORT nor OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID are set. Start it by mpirun, srun or "
      "torchrun, or say which workers run here with --host NAME");
}

std::string slots_text(const app::Application& application, const Environment& environment) {
  const int needed = slots_needed(application);
  const std::string needs = "the file needs " + count_of_slots(needed);
  const Launcher* const launcher = launcher_of(application.run.launcher, environment);
  if (!launcher) return "launcher here: none yet; " + needs + "\n";
  const std::string name = std::string("launcher here: ") + launcher->name + ", ";
  const std::string by = ": " + launcher->command(needed);
  const std::optional<int> offered = launcher->offered(environment);
  if (!offered) return name + "not started yet; " + needs + by + "\n";
  if (*offered == needed) return name + count_of_slots(*offered) + ", as many as the file needs\n";
  return name + count_of_slots(*offered) + (*offered < needed ? ", too few: " : ", more than needed: ") + needs + by +
         "\n";
}

}  // namespace caftan::launchers
