#include "caftan/transport/internal/spin_budget.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

namespace caftan::transport {
namespace {

/// Returns how many cores a control group grants: a time per period. Version 2 has both in one file, version 1 in two.
std::optional<double> granted_cores(const std::filesystem::path& groups) {
  double time = 0;
  double period = 0;
  const bool v2 = static_cast<bool>(std::ifstream(groups / "cpu.max") >> time >> period);  // "max": no number
  const bool v1 = !v2 && std::ifstream(groups / "cpu" / "cpu.cfs_quota_us") >> time &&
                  std::ifstream(groups / "cpu" / "cpu.cfs_period_us") >> period;
  if ((!v2 && !v1) || time <= 0 || period <= 0) return std::nullopt;  // -1: no limit
  return time / period;
}

std::string cores_text(unsigned cores) { return cores == 1 ? "1 core" : std::to_string(cores) + " cores"; }

std::string why_none(const Cores& cores, std::size_t workers) {
  if (cores.mask <= 1) return "1 core";
  if (cores.granted && *cores.granted < cores.mask) {
    char granted[32];
    std::snprintf(granted, sizeof granted, "%.3g", *cores.granted);
    return "the control group grants " + std::string(granted) + " of " + cores_text(cores.mask);
  }
  if (cores.mask < workers) return std::to_string(workers) + " workers share " + cores_text(cores.mask);
  return {};
}

}  // namespace

Cores read_cores(const std::filesystem::path& groups) {
  Cores cores;
  cores.machine = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t mask;
  const bool known = ::sched_getaffinity(0, sizeof mask, &mask) == 0;  // fails with more than 1,024 cores
  cores.mask = known ? static_cast<unsigned>(CPU_COUNT(&mask)) : cores.machine;
  cores.granted = granted_cores(groups);
  return cores;
}

SpinBudget spin_budget(const Cores& cores, std::size_t workers, std::optional<base::Duration> longest) {
  SpinBudget budget{.options = {}, .why_not = why_none(cores, workers)};
  if (!budget.why_not.empty()) return budget;
  budget.options.threads = cores.mask / static_cast<unsigned>(std::max<std::size_t>(workers, 1));
  budget.options.cores = cores.machine;
  budget.options.learns = !longest;
  if (longest) budget.options.longest = *longest;
  return budget;
}

}  // namespace caftan::transport
