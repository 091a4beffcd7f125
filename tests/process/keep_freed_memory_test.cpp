#include "caftan/base/keep_freed_memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace caftan::test::keep_freed_memory_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMallocOfGlibc = false;
#else
constexpr bool kMallocOfGlibc = true;
#endif

constexpr std::size_t kBlock = 5U << 20;
constexpr int kBlocks = 20;
constexpr long kPages = kBlocks * static_cast<long>(kBlock) / 4096;

void use_and_free_blocks() {
  std::vector<void*> blocks;
  for (int i = 0; i < kBlocks; ++i) {
    auto* const block = static_cast<volatile char*>(std::malloc(kBlock));
    for (std::size_t at = 0; at < kBlock; at += 4096) block[at] = 1;
    blocks.push_back(const_cast<char*>(block));
  }
  for (void* const block : blocks) std::free(block);
}

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Returns what `body` returns in a child process: settings of malloc cannot be taken back.
template <typename Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(KeepFreedMemory, ASecondUseOfMemoryTakesNoFreshPages) {
  if (!kMallocOfGlibc) GTEST_SKIP() << "a sanitizer's malloc";
  EXPECT_EQ(in_child([] {
              ::unsetenv("MALLOC_TRIM_THRESHOLD_");
              keep_freed_memory();
              use_and_free_blocks();
              const long before = page_faults();
              use_and_free_blocks();
              return page_faults() - before < kPages / 100 ? 0 : 1;
            }),
            0);
}

TEST(KeepFreedMemory, SettingsOfTheUserStay) {
  if (!kMallocOfGlibc) GTEST_SKIP() << "a sanitizer's malloc";
  for (const auto& set : {std::pair{"MALLOC_TRIM_THRESHOLD_", "131072"},
                          std::pair{"GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072"}}) {
    EXPECT_EQ(in_child([&] {
                ::setenv(set.first, set.second, 1);
                keep_freed_memory();
                use_and_free_blocks();
                const long before = page_faults();
                use_and_free_blocks();
                return page_faults() - before > kPages / 2 ? 0 : 1;
              }),
              0)
        << set.first;
  }
}

}  // namespace
}  // namespace caftan::test::keep_freed_memory_test
