// Plain variables as torchrun sets them: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
#include "launcher.hpp"

namespace caftan::launchers {
namespace {

Result<Slot> find_by_variables(const Environment& environment) {
  for (const char* const name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (environment.has(name)) continue;
    return Error(Errc::invalid_config, std::string("run.launcher = \"variables\": the variable ") + name +
                                           " is not set; each process needs RANK, WORLD_SIZE, MASTER_ADDR and "
                                           "MASTER_PORT");
  }
  auto slot = ranked(environment, "variables", "RANK", "WORLD_SIZE");
  if (!slot) return slot;
  if (const auto taken = take_master(environment, *slot); !taken) return taken.error();
  return slot;
}

}  // namespace

constinit const Launcher kVariables{
    .name = "variables",
    .choice = app::LauncherChoice::variables,
    .is_here =
        [](const Environment& environment) {
          return environment.has("RANK") && environment.has("WORLD_SIZE") && environment.has("MASTER_ADDR") &&
                 environment.has("MASTER_PORT");
        },
    .find = find_by_variables,
    .offered = [](const Environment& environment) -> std::optional<int> {
      const auto size = environment.number("WORLD_SIZE", 1, kMostSlots);
      return size ? std::optional(*size) : std::nullopt;
    },
    .command = [](int slots) { return "WORLD_SIZE=" + std::to_string(slots) + ", RANK=0 and so on"; }};

}  // namespace caftan::launchers
