#include "caftan/base/internal/liveness.hpp"

#include <gtest/gtest.h>

namespace caftan::liveness_test {
namespace {

using namespace std::chrono_literals;
using Action = Liveness::Action;

const base::TimePoint kStart = base::ManualClock().now();
constexpr LivenessOptions kOptions{1s, 5s};

/// Calls poll() whenever Liveness asks for it, up to `end`, and counts the pings; each ping has 48 bytes.
struct Poller {
  Liveness liveness{kOptions, "worker1", kStart};
  base::TimePoint now = kStart;
  int pings = 0;
  Action run_until(base::TimePoint end) {
    Action action = Action::nothing;
    while (action != Action::dead && liveness.next_poll() <= end) {
      now = liveness.next_poll();
      action = liveness.poll(now, false);
      if (action == Action::send_ping) {
        ++pings;
        liveness.on_bytes_out(now, 48);
      }
    }
    if (action != Action::dead) now = end;
    return action;
  }
};

TEST(Liveness, SE6_ASilentPeerIsDeadAfterTheTimeoutAndTheErrorNamesIt) {
  Poller poller;
  EXPECT_NE(poller.run_until(kStart + 4999ms), Action::dead);
  EXPECT_EQ(poller.run_until(kStart + 10s), Action::dead);
  EXPECT_EQ(poller.now, kStart + 5s);
  EXPECT_EQ(poller.liveness.error().code(), Errc::peer_down);
  EXPECT_EQ(poller.liveness.error().worker(), "worker1");
  EXPECT_EQ(poller.liveness.error().text(),
            "no bytes from worker1 for 5s (limit 5s; cluster.heartbeat is 1s), after 0 bytes in and 192 out");
}

TEST(Liveness, SE6_ATimeoutBelowTwoIntervalsCountsAsTwo) {
  Poller poller;
  poller.liveness = Liveness({1s, 500ms}, "worker1", kStart);
  EXPECT_NE(poller.run_until(kStart + 1999ms), Action::dead);
  EXPECT_EQ(poller.run_until(kStart + 10s), Action::dead);
  EXPECT_EQ(poller.now, kStart + 2s);
}

TEST(Liveness, SE6_DeathIsFinal) {
  Poller poller;
  ASSERT_EQ(poller.run_until(kStart + 10s), Action::dead);
  poller.liveness.on_bytes_in(kStart + 10s, 1);
  EXPECT_EQ(poller.liveness.poll(kStart + 10s, false), Action::dead);
  EXPECT_EQ(poller.liveness.next_poll(), base::kNever);
}

TEST(Liveness, SE7_OneLongMessageKeepsItsSenderAlive) {
  Poller poller;
  for (int i = 1; i <= 30; ++i) {
    ASSERT_NE(poller.run_until(kStart + i * 4s), Action::dead);
    poller.liveness.on_bytes_in(poller.now, 1);  // never a whole frame
  }
}

TEST(Liveness, SE7_WhatWeWriteSaysNothingAboutThePeer) {
  Poller poller;
  for (int i = 1; i <= 4; ++i) {
    ASSERT_NE(poller.run_until(kStart + i * 1s), Action::dead);
    poller.liveness.on_bytes_out(poller.now, 1 << 20);
  }
  EXPECT_EQ(poller.run_until(kStart + 5s), Action::dead);
}

TEST(Liveness, SE9_PingsOncePerIntervalOfOwnSilenceOnly) {
  Poller idle;
  for (int i = 1; i <= 10; ++i) {
    idle.run_until(kStart + i * 1s);
    idle.liveness.on_bytes_in(idle.now, 48);
  }
  EXPECT_EQ(idle.pings, 10);
  Poller busy;
  for (int i = 1; i <= 100; ++i) {
    busy.run_until(kStart + i * 100ms);
    busy.liveness.on_bytes_out(busy.now, 100);
    busy.liveness.on_bytes_in(busy.now, 100);
  }
  EXPECT_EQ(busy.pings, 0);
}

TEST(Liveness, SE9_APingThatCannotBeWrittenIsAskedForOncePerInterval) {
  Liveness liveness(kOptions, "worker1", kStart);
  EXPECT_EQ(liveness.poll(kStart + 1s, false), Action::send_ping);
  EXPECT_EQ(liveness.poll(kStart + 1s, false), Action::nothing);
  EXPECT_EQ(liveness.poll(kStart + 1999ms, false), Action::nothing);
  EXPECT_EQ(liveness.poll(kStart + 2s, false), Action::send_ping);
}

TEST(Liveness, SE8_TimeInWhichWeStoodStillIsNotThePeersSilence) {
  Poller poller;
  poller.run_until(kStart + 1s);
  poller.liveness.on_bytes_in(poller.now, 48);
  // This process was stopped for an hour; what the peer sent meanwhile has not been read yet.
  EXPECT_EQ(poller.liveness.poll(kStart + 1h, false), Action::send_ping);
  EXPECT_NE(poller.run_until(kStart + 1h + 3s), Action::dead);
  EXPECT_EQ(poller.run_until(kStart + 1h + 6s), Action::dead) << "but it does not live for ever";
}

TEST(Liveness, T1_SE38_APeerThatFrozeIsDeadTheTimeoutAfterItsLastBytesWereRead) {
  Poller poller;
  for (auto at = 1s; at <= 30s; at += 1s) ASSERT_NE(poller.liveness.poll(kStart + at, true), Action::dead);
  poller.liveness.on_bytes_in(kStart + 30500ms, 10);  // a runner is free
  EXPECT_NE(poller.run_until(kStart + 35499ms), Action::dead);
  EXPECT_EQ(poller.run_until(kStart + 60s), Action::dead);
  EXPECT_EQ(poller.now, kStart + 35500ms);
}

TEST(Liveness, SE30_BytesThatWereNotReadYetAreNoSilence) {
  Liveness liveness(kOptions, "worker1", kStart);
  for (base::TimePoint now = kStart + 1s; now <= kStart + 1min; now += 1s) {
    EXPECT_NE(liveness.poll(now, true), Action::dead);
  }
  // Once all bytes are read the peer is judged by the time-out again.
  base::TimePoint now = kStart + 1min;
  while (liveness.poll(now, false) != Action::dead) now += 1s;
  EXPECT_EQ(now, kStart + 1min + kOptions.timeout);
}

}  // namespace
}  // namespace caftan::liveness_test
