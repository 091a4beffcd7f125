#include "caftan/base/reused.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace caftan::base::reused_test {
namespace {

using Pointers = Reused<std::vector<std::shared_ptr<int>>>;

TEST(Reused, TheNextOneHasTheMemoryOfTheLastAndNoneOfItsElements) {
  const auto element = std::make_shared<int>(1);
  const std::shared_ptr<int>* memory = nullptr;
  {
    Pointers first;
    first.push_back(element);
    memory = first.data();
  }
  EXPECT_EQ(element.use_count(), 1);
  Pointers second;
  EXPECT_EQ(second.capacity(), 0U) << "it takes memory only when it is told to";
  second.reuse();
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(second.data(), memory);
}

TEST(Reused, AMoveTakesTheMemoryAlongAndLeavesTheOldOne) {
  Reused<std::vector<int>> to;
  to.push_back(1);
  const int* const old = to.data();
  Reused<std::vector<int>> from;
  from.push_back(2);
  const int* const memory = from.data();
  to = std::move(from);
  EXPECT_EQ(to.data(), memory);
  EXPECT_EQ(to, std::vector<int>{2});
  Reused<std::vector<int>> next;
  next.reuse();
  EXPECT_EQ(next.data(), old);
}

TEST(Reused, LargeMemoryIsNotKept) {
  Reused<std::vector<char>> large;
  large.resize(100'000);
  large.leave();
  EXPECT_EQ(large.capacity(), 0U);
  Reused<std::vector<char>> next;
  next.reuse();
  EXPECT_EQ(next.capacity(), 0U);
}

TEST(Reused, AThreadMayEndWithMemoryThatItKeptAndAfterIt) {
  std::thread([] {
    static thread_local Reused<std::vector<long>> lives_longer;  // made first, so destroyed last
    lives_longer.push_back(1);
    Reused<std::vector<long>> kept;
    kept.push_back(2);
  }).join();
}

}  // namespace
}  // namespace caftan::base::reused_test
