#include "caftan/wire/internal/block_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace caftan::wire::block_pool_test {
namespace {

Block take(BlockPool& pool, std::size_t size) {
  Result<Block> block = pool.take(size);
  EXPECT_TRUE(block);
  return *std::move(block);
}

TEST(BlockPool, BlocksAreAlignedWritableAndOfTheSizeAskedFor) {
  BlockPool pool;
  for (const std::size_t size : {0u, 1u, 64u, 65u, 4096u, 65535u, 65536u, 65537u, 3u << 20}) {
    Block block = take(pool, size);
    EXPECT_EQ(block.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % kBlockAlignment, 0u);
    std::memset(block.data(), 0xab, size);
  }
}

TEST(BlockPool, AReturnedBlockIsTakenAgain) {
  BlockPool pool;
  for (const std::size_t size : {100u, 100000u, 5u << 20}) {
    const std::byte* first = take(pool, size).data();
    EXPECT_EQ(take(pool, size - 3).data(), first);
  }
}

TEST(BlockPool, ABlockHasRoomForTheSizeAskedForAndIsNoLargerThanNeeded) {
  for (const std::size_t power : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 17}) {
    BlockPool pool;
    { const Block exact = take(pool, power); }
    EXPECT_EQ(pool.cached_bytes(), power);
    pool.trim();
    { const Block one_more = take(pool, power + 1); }
    EXPECT_EQ(pool.cached_bytes(), 2 * power);
  }
}

TEST(BlockPool, TheCacheKeepsToItsCap) {
  BlockPool pool({.max_cached_bytes = 1 << 20});
  {
    std::vector<Block> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(take(pool, 256 << 10));
    EXPECT_EQ(pool.cached_bytes(), 0u);
  }
  EXPECT_EQ(pool.cached_bytes(), 1u << 20);
  pool.trim(300 << 10);
  EXPECT_EQ(pool.cached_bytes(), 256u << 10);
  pool.trim();
  EXPECT_EQ(pool.cached_bytes(), 0u);
}

TEST(BlockPool, ABlockOutlivesItsPool) {
  std::optional<BlockPool> pool(std::in_place);
  Block small = take(*pool, 100);
  Block large = take(*pool, 1 << 20);
  std::shared_ptr<const void> shared = take(*pool, 1000).share();
  pool.reset();
  std::memset(small.data(), 1, small.size());
  std::memset(large.data(), 1, large.size());
  EXPECT_NE(shared, nullptr);
}

TEST(BlockPool, AMovedBlockIsGivenBackOnce) {
  BlockPool pool;
  Block a = take(pool, 100);
  Block b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0u);
  a = std::move(b);
  Block& same = a;
  a = std::move(same);
  EXPECT_EQ(a.size(), 100u);
  a = take(pool, 64);
  EXPECT_EQ(pool.cached_bytes(), 128u);
}

TEST(BlockPool, ASharedBlockGoesBackWithItsLastCopy) {
  BlockPool pool;
  Block block = take(pool, 128);
  const void* data = block.data();
  std::shared_ptr<const void> one = std::move(block).share();
  EXPECT_EQ(one.get(), data);
  std::shared_ptr<const void> two = one;
  one.reset();
  EXPECT_EQ(pool.cached_bytes(), 0u);
  two.reset();
  EXPECT_EQ(pool.cached_bytes(), 128u);
}

TEST(BlockPool, AReleasedBlockIsGivenBackByItsPointer) {
  BlockPool pool;
  std::byte* data = take(pool, 128).data();
  std::byte* released = std::move(*pool.take(128)).release();
  EXPECT_EQ(released, data);
  EXPECT_EQ(pool.cached_bytes(), 0u);
  Block::give_back(released);
  Block::give_back(nullptr);
  EXPECT_EQ(pool.cached_bytes(), 128u);
}

TEST(BlockPool, MemoryThatIsNotThereIsAnError) {
  BlockPool pool;
  for (const std::size_t size : {std::size_t{1} << 46, std::numeric_limits<std::size_t>::max()}) {
    const Result<Block> block = pool.take(size);
    if (block) continue;  // a kernel that overcommits memory may grant 64 TiB
    EXPECT_EQ(block.error().code(), Errc::limit_exceeded);
  }
  EXPECT_FALSE(pool.take(std::numeric_limits<std::size_t>::max()));
}

TEST(BlockPool, ASharedOwnerGivesTheBlockBackWithItsLastCopyAlsoAWeakOne) {
  BlockPool pool;
  std::shared_ptr<const void> one = take(pool, 128).share();
  std::shared_ptr<const void> two = one;
  std::weak_ptr<const void> weak = one;
  one.reset();
  EXPECT_EQ(two.use_count(), 1);
  two.reset();
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(pool.cached_bytes(), 0u) << "the counts lie in the block";
  weak.reset();
  EXPECT_EQ(pool.cached_bytes(), 128u);
}

TEST(BlockPool, ThreadsTakeAndReturnEachOthersBlocks) {
  BlockPool pool({.max_cached_bytes = 4 << 20});
  std::vector<Block> handed(64);
  std::vector<std::thread> threads;
  std::mutex mutex;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 2000; ++i) {
        Block block = take(pool, random() % 100000);
        if (block.size() > 0) block.data()[block.size() - 1] = std::byte{1};
        const std::lock_guard lock(mutex);
        std::swap(handed[random() % handed.size()], block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  handed.clear();
  EXPECT_LE(pool.cached_bytes(), 4u << 20);
}

}  // namespace
}  // namespace caftan::wire::block_pool_test
