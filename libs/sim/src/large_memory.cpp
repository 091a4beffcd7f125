#include "caftan/sim/internal/large_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace caftan::sim {

LargeMemory::LargeMemory(std::size_t bytes, std::size_t alignment)
    : alignment_(bytes < kHugePage ? alignment : std::max(alignment, kHugePage)) {
  data_ = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment_)));
  // Advice: without huge pages the memory is as good, only slower.
  if (bytes >= kHugePage) (void)::madvise(data_, bytes, MADV_HUGEPAGE);
}

LargeMemory::~LargeMemory() {
  if (data_) ::operator delete(data_, std::align_val_t(alignment_));
}

}  // namespace caftan::sim
