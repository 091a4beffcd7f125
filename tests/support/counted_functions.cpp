#include "counted_functions.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

// glibc's own functions, which the ones below replace. The first three have a second name; the others are looked up.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace caftan::test {
namespace {

constexpr std::size_t kMostStacks = 1024;
constexpr std::size_t kMostFrames = 24;

struct Stack {
  int size = 0;
  std::array<void*, kMostFrames> frames{};
};

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> locks{0};
std::atomic<std::uint64_t> clocks{0};
std::atomic<Counted> recorded{Counted::none};
std::atomic<std::size_t> stacks_begun{0};
std::array<Stack, kMostStacks> stacks;
thread_local constinit bool is_counted = false;
thread_local constinit bool inside_record = false;

void record(Counted which) noexcept {
  if (recorded.load(std::memory_order_relaxed) != which || inside_record) return;
  inside_record = true;
  const std::size_t number = stacks_begun.fetch_add(1);
  if (number < kMostStacks) stacks[number].size = ::backtrace(stacks[number].frames.data(), kMostFrames);
  inside_record = false;
}

void count(std::atomic<std::uint64_t>& counter, Counted which) noexcept {
  if (!is_counted) return;
  counter.fetch_add(1, std::memory_order_relaxed);
  record(which);
}

template <class Function>
Function* function_of_libc(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void count_this_thread() noexcept { is_counted = true; }

FunctionCounts function_counts() noexcept {
  return {.allocations = allocations.load(), .locks = locks.load(), .clocks = clocks.load()};
}

FunctionCounts operator-(const FunctionCounts& later, const FunctionCounts& earlier) noexcept {
  return {.allocations = later.allocations - earlier.allocations,
          .locks = later.locks - earlier.locks,
          .clocks = later.clocks - earlier.clocks};
}

void record_stacks(Counted which) noexcept {
  if (which != Counted::none) stacks_begun.store(0);
  recorded.store(which);
}

std::string recorded_stacks() {
  std::string text;
  const std::size_t count = std::min(stacks_begun.load(), kMostStacks);
  for (std::size_t i = 0; i < count; ++i) {
    char** const lines = ::backtrace_symbols(stacks[i].frames.data(), stacks[i].size);
    for (int frame = 2; lines && frame < stacks[i].size; ++frame) text += std::string(lines[frame]) + "\n";
    text += "\n";
    std::free(lines);
  }
  return text;
}

}  // namespace caftan::test

using caftan::test::Counted;

extern "C" {

void* malloc(std::size_t size) {
  caftan::test::count(caftan::test::allocations, Counted::allocations);
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  caftan::test::count(caftan::test::allocations, Counted::allocations);
  return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  caftan::test::count(caftan::test::allocations, Counted::allocations);
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  caftan::test::count(caftan::test::allocations, Counted::allocations);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto lock = caftan::test::function_of_libc<int(pthread_mutex_t*)>("pthread_mutex_lock");
  caftan::test::count(caftan::test::locks, Counted::locks);
  return lock(mutex);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto look = caftan::test::function_of_libc<int(clockid_t, timespec*)>("clock_gettime");
  caftan::test::count(caftan::test::clocks, Counted::clocks);
  return look(clock, time);
}

}  // extern "C"
