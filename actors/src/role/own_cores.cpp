#include "role/own_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "caftan/base/internal/joined.hpp"

namespace caftan::actors {

OwnCores own_cores(const app::Plan& plan, const app::PlannedWorker& worker, const std::vector<int>& allowed) {
  std::set<int> processes;  // those of the host that have cores of their own, in the order of the plan
  for (const app::PlannedWorker& other : plan.workers) {
    if (other.own_cores && other.host == worker.host) processes.insert(other.process);
  }
  const std::size_t parts = processes.size();
  if (!processes.contains(worker.process) || parts < 2 || parts > allowed.size()) return {};
  const auto part = static_cast<std::size_t>(std::ranges::distance(processes.begin(), processes.find(worker.process)));
  const std::size_t begin = part * allowed.size() / parts;
  const std::size_t end = (part + 1) * allowed.size() / parts;
  if (static_cast<std::size_t>(worker.torch_threads) > end - begin) return {};
  OwnCores own;
  own.cores.assign(allowed.begin() + static_cast<std::ptrdiff_t>(begin),
                   allowed.begin() + static_cast<std::ptrdiff_t>(end));
  std::vector<std::string> numbers;
  for (const int core : own.cores) numbers.push_back(std::to_string(core));
  own.text = "on " + std::to_string(own.cores.size()) + " of " + std::to_string(allowed.size()) +
             " cores: " + base::joined(numbers) + " (run.own_cores)";
  return own;
}

std::vector<int> allowed_cores() {
  cpu_set_t mask;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

std::error_code keep_to(const std::vector<int>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores) CPU_SET(core, &mask);
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0 ? std::error_code()
                                                         : std::error_code(errno, std::generic_category());
}

}  // namespace caftan::actors
