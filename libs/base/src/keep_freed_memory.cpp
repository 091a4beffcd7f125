#include "caftan/base/keep_freed_memory.hpp"

#include <malloc.h>

#include <cstdlib>
#include <string_view>

namespace caftan {
namespace {

constexpr int kKeptBytes = 512 << 20;
constexpr int kLargestKept = 32 << 20;  // what glibc takes at most: half of a thread's heap

bool user_has_settings() {
  for (const char* const name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"}) {
    if (std::getenv(name)) return true;
  }
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  return tunables && std::string_view(tunables).find("glibc.malloc") != std::string_view::npos;
}

}  // namespace

void keep_freed_memory() {
#if defined(__GLIBC__)
  if (user_has_settings()) return;
  // Either call switches off that glibc raises these numbers by itself, so both are made.
  mallopt(M_MMAP_THRESHOLD, kLargestKept);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
#endif
}

}  // namespace caftan
