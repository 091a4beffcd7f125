// The default of limits.shared_memory: a part of the memory that this process may use at all.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "folder.hpp"
#include "role/shared_memory_limit.hpp"

namespace caftan::test::shared_memory_limit_test {
namespace {

using actors::default_shared_memory;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(SharedMemoryLimit, IsAnEighthOfTheGroupsMemoryOverTheWorkers) {
  const Folder folder;
  std::ofstream(folder / "memory.max") << 64 * kMiB << "\n";
  EXPECT_EQ(default_shared_memory(1, folder / ""), 8 * kMiB);
  EXPECT_EQ(default_shared_memory(4, folder / ""), 2 * kMiB);
  EXPECT_EQ(default_shared_memory(0, folder / ""), 8 * kMiB);
}

TEST(SharedMemoryLimit, ReadsGroupsOfTheFirstVersionToo) {
  const Folder folder;
  std::filesystem::create_directory(folder / "memory");
  std::ofstream(folder / "memory/memory.limit_in_bytes") << 32 * kMiB << "\n";
  EXPECT_EQ(default_shared_memory(2, folder / ""), 2 * kMiB);
}

TEST(SharedMemoryLimit, OfAGroupWithoutALimitIsAPartOfTheMachine) {
  const Folder folder;
  std::ofstream(folder / "memory.max") << "max\n";
  const std::uint64_t limit = default_shared_memory(1, folder / "");
  EXPECT_EQ(limit, default_shared_memory(1, folder / "nothing"));
  EXPECT_GT(limit, 0U);
  EXPECT_LE(limit, 1024 * kMiB);
}

}  // namespace
}  // namespace caftan::test::shared_memory_limit_test
