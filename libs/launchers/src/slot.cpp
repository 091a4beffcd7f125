#include "caftan/launchers/internal/slot.hpp"

#include <algorithm>
#include <array>

#include "caftan/base/fnv1a.hpp"
#include "launcher.hpp"

namespace caftan::launchers {

Result<Slot> ranked(const Environment& environment, const char* launcher, const char* rank, const char* size) {
  const auto all = environment.number(size, 1, kMostSlots);
  if (!all) return all.error();
  const auto own = environment.number(rank, 0, *all - 1);
  if (!own) return own.error();
  return Slot{.launcher = launcher, .rank = *own, .size = *all};
}

Result<void> take_master(const Environment& environment, Slot& slot) {
  if (const auto first = environment.find("MASTER_ADDR")) slot.first = *first;
  if (!environment.has("MASTER_PORT")) return {};
  const auto port = environment.number("MASTER_PORT", 1, 65535);
  if (!port) return port.error();
  slot.port = static_cast<std::uint16_t>(*port);
  return {};
}

std::uint16_t port_for(std::string_view job) {
  constexpr std::uint64_t kFirst = 20000;  // below the ports that systems give to programs that ask for any
  constexpr std::uint64_t kPorts = 10000;
  return static_cast<std::uint16_t>(kFirst + base::fnv1a(job) % kPorts);
}

bool is_orphan(const Slot& slot, int parent, std::string_view name) {
  constexpr std::array<std::string_view, 16> kStarters{
      "slurmstepd",      "mpirun", "mpiexec",     "mpiexec.hydra", "orterun",   "orted",   "prterun", "prted",
      "hydra_pmi_proxy", "tini",   "docker-init", "dumb-init",     "catatonit", "appinit", "sh",      "bash"};
  if (!slot.is_child) return false;
  return name == "systemd" || (parent == 1 && std::ranges::find(kStarters, name) == kStarters.end());
}

int slots_needed(const app::Application& application) { return static_cast<int>(application.hosts.size()); }

Result<std::string> take_slot(app::Application& application, const Slot& slot, const std::string& own_address) {
  const int needed = slots_needed(application);
  if (slot.size != needed) {
    return Error(Errc::invalid_config,
                 "the launcher " + slot.launcher + " has " + (slot.size < needed ? "too few" : "too many") +
                     " processes for the file: " + std::to_string(slot.size) + " instead of " + std::to_string(needed) +
                     ", one for each host of [hosts], or without [hosts] for each worker");
  }
  app::HostSpec& first = application.hosts.front();
  if (first.address.empty()) {
    if (slot.first.empty()) {
      return Error(Errc::invalid_config, "the launcher " + slot.launcher +
                                             " does not say where its first process is: set MASTER_ADDR, or address in "
                                             "[hosts." +
                                             first.name + "]");
    }
    first.address = slot.first;
    first.port = slot.port;
    if (first.port == 0) {
      return Error(Errc::invalid_config, "the launcher " + slot.launcher +
                                             " does not say at which port the first process listens: set MASTER_PORT, "
                                             "or address in [hosts." +
                                             first.name + "]");
    }
  }
  app::HostSpec& own = application.hosts[static_cast<std::size_t>(slot.rank)];
  if (own.address.empty()) own.address = own_address;
  return own.name;
}

}  // namespace caftan::launchers
