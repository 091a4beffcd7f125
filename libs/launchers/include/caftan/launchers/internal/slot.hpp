/// Slots: a launcher of a cluster starts the same command several times, and gives each process its rank by variables.
/// `find_slot` reads them, `take_slot` makes the process the host of the file that has this rank.
/// Rules: docs/protocols/launchers.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "caftan/app/internal/application.hpp"
#include "caftan/base/result.hpp"
#include "caftan/launchers/internal/environment.hpp"

namespace caftan::launchers {

/// The most processes that a launcher may start for a run.
inline constexpr int kMostSlots = 65536;

/// One process of a launcher, as its variables describe it.
struct Slot {
  std::string launcher{};  ///< its name in run.launcher
  int rank = 0;
  int size = 1;
  std::string first{};     ///< host name or address of the process with rank 0; empty: the launcher does not say
  std::uint16_t port = 0;  ///< where the coordinator listens; 0: the launcher does not say
  bool is_child = false;   ///< the parent process is the launcher's, and this process ends with it (LN-6)
};

/// Returns the slot of this process. Errors: invalid_config (no launcher has started it, or its variables contradict
/// each other).
/// @param choice  one that gives addresses
Result<Slot> find_slot(app::LauncherChoice choice, const Environment& environment);

/// Returns whether the launcher's process that started this one has ended: the parent is the one that the system gives
/// to orphans. In a container the first process may be the launcher, or an init that has started this process: then
/// nothing is known, and false is returned. @param name  of the parent's program (LN-6)
bool is_orphan(const Slot& slot, int parent, std::string_view name);

/// Returns how many slots the file needs: one for each of its hosts. Precondition: placement "hosts".
int slots_needed(const app::Application& application);

/// Returns what `plan` says of a launcher that gives addresses: how many slots the file needs, how many there are in
/// this allocation, if any, and how to get them. One line.
std::string slots_text(const app::Application& application, const Environment& environment);

/// Makes the process the host that has the slot's rank: fills in the addresses that the file leaves to the launcher,
/// and returns the host's name. An address in the file wins (LN-3).
/// @param own_address  at which other hosts reach this one
/// Errors: invalid_config (another number of slots than the file needs, or no address of the first host).
Result<std::string> take_slot(app::Application& application, const Slot& slot, const std::string& own_address);

}  // namespace caftan::launchers
