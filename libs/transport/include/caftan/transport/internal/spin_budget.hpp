/// `spin_budget`: how many threads of a process may spin, and why none may. Rule: docs/protocols/spin.md, SP-5.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "caftan/transport/internal/spin_policy.hpp"

namespace caftan::transport {

/// The cores that this process may use.
struct Cores {
  unsigned machine = 1;           ///< all that are online
  unsigned mask = 1;              ///< those on which the process may run
  std::optional<double> granted;  ///< what its control group grants, in cores; nothing: no limit
};

/// Reads them. @param groups  where the control groups of this process are
Cores read_cores(const std::filesystem::path& groups = "/sys/fs/cgroup");

struct SpinBudget {
  SpinOptions options;
  std::string why_not;  ///< empty: threads may spin
};

/// @param workers  of this host, each a process of its own
/// @param longest  of each spin, always; nothing: it follows the waits of a thread, up to SpinOptions::kLongest
SpinBudget spin_budget(const Cores& cores, std::size_t workers, std::optional<base::Duration> longest = std::nullopt);

}  // namespace caftan::transport
