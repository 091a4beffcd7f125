// HS-14: strangers do not fill the log.
#include "caftan/net/internal/refusal_log.hpp"

#include <gtest/gtest.h>

namespace caftan::net::refusal_log_test {
namespace {

using Action = RefusalLog::Action;
using std::chrono::seconds;

TEST(RefusalLog, T19_HS14_TenLinesAMinuteAndThenTheirNumber) {
  RefusalLog log;
  const base::TimePoint start{seconds(100)};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(log.on_refused(Errc::malformed_payload, start + seconds(i)), Action::write);
  EXPECT_EQ(log.on_refused(Errc::malformed_payload, start + seconds(10)), Action::count_first);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(log.on_refused(Errc::malformed_payload, start + seconds(20)), Action::count);
  }
  EXPECT_EQ(log.until(Errc::malformed_payload), start + seconds(60));
  EXPECT_EQ(log.end_of_minute(Errc::malformed_payload), 5001U);
  EXPECT_EQ(log.on_refused(Errc::malformed_payload, start + seconds(60)), Action::write);
}

TEST(RefusalLog, T19_EachCodeCountsForItself) {
  RefusalLog log;
  const base::TimePoint now{seconds(100)};
  for (int i = 0; i < 100; ++i) (void)log.on_refused(Errc::malformed_payload, now);
  EXPECT_EQ(log.on_refused(Errc::not_authenticated, now), Action::write);
}

TEST(RefusalLog, T19_FewRefusalsAreAllWritten) {
  RefusalLog log;
  base::TimePoint now{seconds(100)};
  for (int i = 0; i < 100; ++i, now += seconds(7)) {
    ASSERT_EQ(log.on_refused(Errc::wrong_cluster, now), Action::write) << i;
  }
}

}  // namespace
}  // namespace caftan::net::refusal_log_test
