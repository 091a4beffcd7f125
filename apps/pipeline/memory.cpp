#include "pipeline/memory.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace caftan::pipeline {
namespace {

/// Returns the bytes behind a heading of /proc/self/status, which has them in kB.
std::int64_t status_of(const std::string& heading) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(heading)) continue;
    std::istringstream number(line.substr(heading.size()));
    std::int64_t kilobytes = 0;
    number >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t peak_memory() { return status_of("VmHWM:"); }

std::int64_t resident_memory() { return status_of("VmRSS:"); }

bool forget_peak_memory() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5\n";  // proc(5): sets VmHWM to VmRSS
  clear.flush();
  return clear.good();
}

}  // namespace caftan::pipeline
