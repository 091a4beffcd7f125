#include "caftan/wire/internal/block_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "caftan/base/mutex.hpp"

namespace caftan::wire {
namespace detail {

/// Lies in the 64 bytes before the data of each block.
struct BlockHeader {
  /// Set while the block is in use; empty while the pool caches the block, because the pool owns it then.
  std::shared_ptr<BlockPoolState> pool;
  BlockHeader* next = nullptr;                          ///< the next block of the same size class in the cache
  std::size_t size_class = 0;                           ///< log2 of the capacity
  alignas(std::max_align_t) std::byte of_shared[32]{};  ///< where the counts of a shared owner lie
};
static_assert(sizeof(BlockHeader) == kBlockAlignment);

namespace {

constexpr std::size_t kSmallestClass = 6;
constexpr std::size_t kLargestClass = 46;
constexpr std::size_t kMappedClass = 16;
constexpr std::size_t kHugePageClass = 21;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{1} << kHugePageClass;

std::byte* data_of(BlockHeader* header) noexcept { return reinterpret_cast<std::byte*>(header) + kBlockAlignment; }
BlockHeader* header_of(void* data) noexcept {
  return reinterpret_cast<BlockHeader*>(static_cast<std::byte*>(data) - kBlockAlignment);
}

/// One page more than the capacity is mapped: room for the 64 bytes of the header.
std::size_t mapped_bytes(std::size_t size_class) noexcept { return (std::size_t{1} << size_class) + kPage; }

void* map_block(std::size_t size_class) noexcept {
  const std::size_t bytes = mapped_bytes(size_class);
  const bool huge = size_class >= kHugePageClass;
  const std::size_t reserved = bytes + (huge ? kHugePage : 0);
  void* at = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (!huge) return at;
  // Huge pages need an aligned start: maps more, and unmaps what lies before and behind the aligned part.
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t aligned = (begin + kHugePage - 1) & ~(std::uintptr_t{kHugePage} - 1);
  if (aligned > begin) ::munmap(at, aligned - begin);
  const std::uintptr_t end = begin + reserved;
  if (end > aligned + bytes) ::munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  ::madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

BlockHeader* make_block(std::size_t size_class) noexcept {
  void* at = size_class >= kMappedClass ? map_block(size_class)
                                        : ::operator new ((std::size_t{1} << size_class) + kBlockAlignment,
                                                          std::align_val_t{kBlockAlignment}, std::nothrow);
  if (!at) return nullptr;
  auto* header = ::new (at) BlockHeader;
  header->size_class = size_class;
  return header;
}

void free_block(BlockHeader* header) noexcept {
  const std::size_t size_class = header->size_class;
  header->~BlockHeader();
  if (size_class >= kMappedClass) {
    ::munmap(header, mapped_bytes(size_class));
  } else {
    ::operator delete (header, std::align_val_t{kBlockAlignment});
  }
}

}  // namespace

struct BlockPoolState {
  struct SizeClass {
    std::atomic<BlockHeader*> last{nullptr};  // the block that was freed last; a thread takes it by an exchange
    base::Mutex mutex;
    BlockHeader* free CAFTAN_GUARDED_BY(mutex) = nullptr;
  };

  explicit BlockPoolState(std::size_t most) : max_cached_bytes(most) {}
  ~BlockPoolState() { trim(0); }

  BlockHeader* pop(std::size_t size_class) noexcept {
    BlockHeader* const header = pop_uncounted(classes[size_class]);
    if (header) cached_bytes.fetch_sub(std::size_t{1} << size_class, std::memory_order_relaxed);
    return header;
  }

  void push(BlockHeader* header) noexcept {
    const std::size_t bytes = std::size_t{1} << header->size_class;
    // Counts first: two threads that return blocks at once must not both fit into the last free bytes.
    const std::size_t cached = cached_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (cached > max_cached_bytes || closed.load(std::memory_order_relaxed)) {
      cached_bytes.fetch_sub(bytes, std::memory_order_relaxed);
      free_block(header);
      return;
    }
    SizeClass& of = classes[header->size_class];
    BlockHeader* none = nullptr;
    if (of.last.compare_exchange_strong(none, header, std::memory_order_acq_rel)) return;
    const base::LockGuard lock(of.mutex);
    header->next = of.free;
    of.free = header;
  }

  void trim(std::size_t keep) noexcept {
    for (std::size_t size_class = kLargestClass; size_class >= kSmallestClass; --size_class) {
      while (cached_bytes.load(std::memory_order_relaxed) > keep) {
        BlockHeader* header = pop(size_class);
        if (!header) break;
        free_block(header);
      }
    }
  }

  static BlockHeader* pop_uncounted(SizeClass& of) noexcept {
    if (of.last.load(std::memory_order_relaxed)) {
      if (BlockHeader* const last = of.last.exchange(nullptr, std::memory_order_acq_rel)) return last;
    }
    const base::LockGuard lock(of.mutex);
    BlockHeader* const header = of.free;
    if (header) of.free = header->next;
    return header;
  }

  const std::size_t max_cached_bytes;
  std::atomic<std::size_t> cached_bytes{0};
  std::atomic<bool> closed{false};
  std::array<SizeClass, kLargestClass + 1> classes;
};

}  // namespace detail

void Block::give_back(void* data) noexcept {
  if (!data) return;
  detail::BlockHeader* header = detail::header_of(data);
  const std::shared_ptr<detail::BlockPoolState> pool = std::move(header->pool);
  pool->push(header);
}

namespace {

/// Puts the counts of a shared owner into the block's own header, and gives the block back together with them.
template <class T>
struct AllocatorInHeader {
  using value_type = T;
  explicit AllocatorInHeader(std::byte* of) noexcept : data(of) {}
  template <class U>
  explicit AllocatorInHeader(const AllocatorInHeader<U>& other) noexcept : data(other.data) {}

  T* allocate(std::size_t) noexcept {
    static_assert(sizeof(T) <= sizeof(detail::BlockHeader::of_shared) && alignof(T) <= alignof(std::max_align_t));
    return reinterpret_cast<T*>(detail::header_of(data)->of_shared);
  }
  void deallocate(T*, std::size_t) noexcept { Block::give_back(data); }
  bool operator==(const AllocatorInHeader&) const = default;

  std::byte* data;
};

}  // namespace

std::shared_ptr<const void> Block::share() && {
  std::byte* const data = std::move(*this).release();
  return std::shared_ptr<const void>(
      data, [](const void*) {}, AllocatorInHeader<std::byte>(data));
}

BlockPool::BlockPool(Options options) : state_(std::make_shared<detail::BlockPoolState>(options.max_cached_bytes)) {}

BlockPool::~BlockPool() {
  state_->closed.store(true, std::memory_order_relaxed);
  state_->trim(0);
}

Result<Block> BlockPool::take(std::size_t size) {
  const std::size_t wanted = static_cast<std::size_t>(std::bit_width(size > 0 ? size - 1 : 0));
  const std::size_t size_class = std::max(wanted, detail::kSmallestClass);
  detail::BlockHeader* header = nullptr;
  if (size_class <= detail::kLargestClass) {
    header = state_->pop(size_class);
    if (!header) header = detail::make_block(size_class);
  }
  if (!header) return Error(Errc::limit_exceeded, "no memory for a block of " + std::to_string(size) + " bytes");
  header->pool = state_;
  return Block(detail::data_of(header), size);
}

void BlockPool::trim(std::size_t keep) noexcept { state_->trim(keep); }

std::size_t BlockPool::cached_bytes() const noexcept { return state_->cached_bytes.load(std::memory_order_relaxed); }

}  // namespace caftan::wire
