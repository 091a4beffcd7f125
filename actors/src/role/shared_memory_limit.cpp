#include "role/shared_memory_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace caftan::actors {
namespace {

constexpr std::uint64_t kMostShared = std::uint64_t{1} << 30;

/// Returns the number in a file, `otherwise` if the file has none ("max") or is missing.
std::uint64_t number_in(const std::filesystem::path& file, std::uint64_t otherwise) {
  std::uint64_t number = 0;
  return std::ifstream(file) >> number ? number : otherwise;
}

}  // namespace

std::uint64_t default_shared_memory(std::size_t workers, const std::filesystem::path& groups) {
  std::uint64_t memory =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  memory = std::min(memory, number_in(groups / "memory.max", memory));                        // version 2
  memory = std::min(memory, number_in(groups / "memory" / "memory.limit_in_bytes", memory));  // version 1
  return std::min(memory / 8 / std::max<std::size_t>(workers, 1), kMostShared);
}

}  // namespace caftan::actors
