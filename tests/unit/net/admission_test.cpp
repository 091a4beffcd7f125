#include "caftan/net/internal/admission.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

namespace caftan::net::admission_test {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

struct Served {
  std::vector<int> order;
  std::vector<Errc> errors;
  AdmissionWindow::Waiter waiter(int number) {
    return [this, number](Result<void> result) {
      order.push_back(number);
      errors.push_back(result ? Errc::ok : result.error().code());
    };
  }
};

TEST(AdmissionWindow, SE10_RefusesWhatDoesNotFitAndTakesNothing) {
  AdmissionWindow window(100);
  EXPECT_TRUE(window.try_acquire(60));
  const auto refused = window.try_acquire(41);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::overloaded);
  EXPECT_EQ(window.outstanding(), 60U);
  EXPECT_TRUE(window.try_acquire(40));
  window.release(60);
  EXPECT_TRUE(window.try_acquire(60));
}

TEST(AdmissionWindow, K9_SE10_AdmitsNoMoreRequestsThanItMayAndLetsOthersWait) {
  AdmissionWindow window(100, 2);
  Served served;
  EXPECT_TRUE(window.try_acquire(1));
  EXPECT_TRUE(window.try_acquire(1));
  const auto refused = window.try_acquire(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::overloaded);
  EXPECT_NE(refused.error().text().find("limits.pending_calls"), std::string::npos) << refused.error().text();
  EXPECT_NE(*window.acquire_or_wait(1, served.waiter(1)), 0U);
  EXPECT_TRUE(served.order.empty());
  window.release(1);
  EXPECT_EQ(served.order, std::vector<int>{1});
  EXPECT_FALSE(window.try_acquire(1));
}

TEST(AdmissionWindow, SE11_OneLargerThanTheWindowIsAdmittedAlone) {
  AdmissionWindow window(100);
  EXPECT_TRUE(window.try_acquire(kHuge));
  EXPECT_FALSE(window.try_acquire(0));
  EXPECT_FALSE(window.try_acquire(kHuge));
  window.release(kHuge);
  EXPECT_TRUE(window.try_acquire(1));
  EXPECT_FALSE(window.try_acquire(kHuge)) << "something else is outstanding";
}

TEST(AdmissionWindow, SE11_ARequestOfNoBytesIsOutstandingToo) {
  AdmissionWindow window(100);
  EXPECT_TRUE(window.try_acquire(0));
  EXPECT_FALSE(window.try_acquire(101));
  window.release(0);
  EXPECT_TRUE(window.try_acquire(101));
}

TEST(AdmissionWindow, SE12_WaitersAreServedInOrderAndNoneOvertakes) {
  AdmissionWindow window(100);
  Served served;
  ASSERT_TRUE(window.try_acquire(90));
  EXPECT_NE(*window.acquire_or_wait(500, served.waiter(1)), 0U);
  EXPECT_NE(*window.acquire_or_wait(5, served.waiter(2)), 0U);
  EXPECT_NE(*window.acquire_or_wait(5, served.waiter(3)), 0U);
  EXPECT_FALSE(window.try_acquire(1)) << "it would fit, but others wait";
  window.release(90);
  EXPECT_EQ(served.order, std::vector<int>{1});
  window.release(500);
  EXPECT_EQ(served.order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(window.outstanding(), 10U);
}

TEST(AdmissionWindow, SE12_AcquiresAtOnceWhenThereIsRoom) {
  AdmissionWindow window(100);
  Served served;
  EXPECT_EQ(*window.acquire_or_wait(100, served.waiter(1)), 0U);
  EXPECT_TRUE(served.order.empty());
}

TEST(AdmissionWindow, SE12_ACancelledWaiterIsNotCalledAndUnblocksThoseBehindIt) {
  AdmissionWindow window(100);
  Served served;
  ASSERT_TRUE(window.try_acquire(50));
  const auto large = window.acquire_or_wait(80, served.waiter(1));
  ASSERT_TRUE(window.acquire_or_wait(20, served.waiter(2)));
  EXPECT_TRUE(window.cancel(*large));
  EXPECT_EQ(served.order, std::vector<int>{2});
  EXPECT_FALSE(window.cancel(*large));
}

TEST(AdmissionWindow, SE13_ClosingEndsEveryWaiterWithTheReason) {
  Served served;
  {
    AdmissionWindow window(10);
    ASSERT_TRUE(window.try_acquire(10));
    ASSERT_TRUE(window.acquire_or_wait(1, served.waiter(1)));
    window.close(Error(Errc::peer_down, "gone"));
    EXPECT_EQ(served.errors, std::vector<Errc>{Errc::peer_down});
    EXPECT_EQ(window.try_acquire(1).error().code(), Errc::peer_down);
    EXPECT_EQ(window.acquire_or_wait(1, served.waiter(2)).error().code(), Errc::peer_down);
    window.release(10);
    EXPECT_EQ(window.outstanding(), 0U);
  }
  EXPECT_EQ(served.order, std::vector<int>{1});
}

TEST(AdmissionWindow, SE13_NothingIsAdmittedOnceItIsClosedAlsoWithoutAWaiter) {
  AdmissionWindow window(100);
  EXPECT_TRUE(window.try_acquire(10));
  window.close(Error(Errc::peer_down, "gone"));
  const auto refused = window.try_acquire(10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::peer_down);
  window.release(10);
  EXPECT_EQ(window.outstanding(), 0U);
  EXPECT_FALSE(window.try_acquire(10));
}

TEST(AdmissionWindow, SE13_TheEndOfTheWindowEndsWaiters) {
  Served served;
  {
    AdmissionWindow window(10);
    ASSERT_TRUE(window.try_acquire(10));
    ASSERT_TRUE(window.acquire_or_wait(1, served.waiter(1)));
  }
  EXPECT_EQ(served.errors, std::vector<Errc>{Errc::shut_down});
}

TEST(AdmissionWindow, SE12_AWaiterMayReleaseAtOnce) {
  AdmissionWindow window(10);
  int served = 0;
  ASSERT_TRUE(window.try_acquire(10));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(window.acquire_or_wait(10, [&](Result<void> result) {
      ASSERT_TRUE(result);
      ++served;
      window.release(10);
    }));
  }
  window.release(10);
  EXPECT_EQ(served, 100);
  EXPECT_EQ(window.outstanding(), 0U);
}

TEST(AdmissionWindow, SE10_SE12_EveryWaiterIsServedOnceWhenThreadsRace) {
  AdmissionWindow window(64);
  std::atomic<int> served{0};
  constexpr int kThreads = 4;
  constexpr int kRequests = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const std::uint64_t bytes = static_cast<std::uint64_t>((i + t) % 100);
        if (i % 3 == 0 && window.try_acquire(bytes)) {
          ++served;
          window.release(bytes);
          continue;
        }
        const auto id = window.acquire_or_wait(bytes, [&window, &served, bytes](Result<void> result) {
          if (!result) return;
          ++served;
          window.release(bytes);
        });
        if (*id == 0) {
          ++served;
          window.release(bytes);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, kThreads * kRequests);
  EXPECT_EQ(window.outstanding(), 0U);
}

}  // namespace
}  // namespace caftan::net::admission_test
