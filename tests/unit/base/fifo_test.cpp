#include "caftan/base/internal/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

namespace caftan::base::fifo_test {
namespace {

TEST(Fifo, GivesItemsInTheOrderInWhichTheyCame) {
  std::mt19937 random(7);
  Fifo<int> fifo;
  std::deque<int> expected;
  for (int step = 0; step < 20'000; ++step) {
    // Long phases in which it grows, and then in which it gets empty.
    const bool grows = random() % 100 < (step / 2000 % 2 == 0 ? 60U : 40U);
    if (grows || expected.empty()) {
      fifo.push_back(int{step});
      expected.push_back(step);
    } else {
      fifo.pop_front();
      expected.pop_front();
    }
    ASSERT_EQ(fifo.size(), expected.size());
    ASSERT_EQ(fifo.empty(), expected.empty());
    if (expected.empty()) continue;
    ASSERT_EQ(fifo.front(), expected.front());
    ASSERT_EQ(fifo.back(), expected.back());
  }
  EXPECT_TRUE(std::equal(fifo.begin(), fifo.end(), expected.begin(), expected.end()));
}

TEST(Fifo, DestroysAnItemWhenItIsRemoved) {
  Fifo<std::shared_ptr<int>> fifo;
  const auto item = std::make_shared<int>(1);
  for (int i = 0; i < 3; ++i) fifo.push_back(std::shared_ptr<int>(item));
  fifo.pop_front();
  EXPECT_EQ(item.use_count(), 3);
  fifo.clear();
  EXPECT_EQ(item.use_count(), 1);
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace caftan::base::fifo_test
