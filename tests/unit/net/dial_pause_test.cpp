// SE-33: a missing member is dialled often at first, and seldom later.
#include "caftan/net/internal/dial_pause.hpp"

#include <gtest/gtest.h>

#include <set>

namespace caftan::net::dial_pause_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DialPause, T13_SE33_OneThatStaysAwayIsDialledSeldom) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    DialPause pause(seed);
    base::TimePoint now{};
    int attempts = 0;
    for (; now < base::TimePoint{} + seconds(60); now += pause.after_failure(now)) ++attempts;
    EXPECT_LE(attempts, 150) << seed;  // each 20 ms: 3000
    EXPECT_GE(attempts, 50) << seed;
  }
}

TEST(DialPause, T13_SE33_OneThatComesIsMetWithinAnEighthOfItsTime) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    DialPause pause(seed);
    const base::TimePoint first{};
    for (base::TimePoint now = first; now < first + seconds(30);) {
      const base::Duration next = pause.after_failure(now);
      ASSERT_LE(next, std::max<base::Duration>(DialPause::kShortest,
                                               std::min<base::Duration>((now - first) / 8, seconds(1))));
      ASSERT_GE(next, DialPause::kShortest * 3 / 4);
      now += next;
    }
  }
}

TEST(DialPause, T13_ProcessesDoNotDialInStep) {
  std::set<base::Duration> pauses;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) pauses.insert(DialPause(seed).after_failure({}));
  EXPECT_GT(pauses.size(), 10U);
}

TEST(DialPause, K7_SE34_KnowsHowLongAgoTheFirstAttemptFailed) {
  DialPause pause(1);
  const base::TimePoint first{};
  EXPECT_TRUE(pause.has_begun_within(seconds(10), first));
  (void)pause.after_failure(first);
  (void)pause.after_failure(first + seconds(9));
  EXPECT_TRUE(pause.has_begun_within(seconds(10), first + seconds(9)));
  EXPECT_FALSE(pause.has_begun_within(seconds(10), first + seconds(10)));
  pause.reset();
  EXPECT_TRUE(pause.has_begun_within(seconds(10), first + seconds(10)));
}

TEST(DialPause, AResetBeginsAnew) {
  DialPause pause(1);
  base::TimePoint now{};
  (void)pause.after_failure(now);
  now += seconds(100);
  EXPECT_GT(pause.after_failure(now), milliseconds(700));
  pause.reset();
  EXPECT_LE(pause.after_failure(now), DialPause::kShortest);
}

}  // namespace
}  // namespace caftan::net::dial_pause_test
