// Which losses a run survives, and what it says of them (RN-14 to RN-21).
#include <string>
#include <utility>
#include <vector>

#include "supervised.hpp"

namespace caftan::run::supervisor_loss_test {
namespace {

constexpr std::size_t kFirstTrainer = 0;
constexpr std::size_t kSecondTrainer = 1;
constexpr std::size_t kServer = 2;
constexpr std::size_t kHelper = 3;
constexpr std::size_t kWorkers = 4;

/// Two trainers, which drive and may be lost, a server, which may not, and a helper, which may: each a process.
class Losing : public ::testing::Test {
 protected:
  Losing() {
    for (const char* name : {"trainer-0", "trainer-1", "server", "helper"}) {
      const std::size_t number = options_.workers.size();
      options_.workers.push_back({.name = name,
                                  .role = name,
                                  .process = static_cast<int>(number),
                                  .drives = number <= kSecondTrainer,
                                  .may_be_lost = number != kServer});
    }
  }
  Supervisor make() const { return Supervisor(options_, now_); }
  Supervisor make_running() const {
    Supervisor supervisor = make();
    for (std::size_t worker = 0; worker < kWorkers; ++worker) {
      if (!options_.workers[worker].here) continue;
      supervisor.ready(worker);
      supervisor.made(worker);
    }
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    return supervisor;
  }
  /// Kills the process of a worker, so many seconds after the start.
  void kill(Supervisor& supervisor, std::size_t worker, int seconds = 1) const {
    supervisor.died(static_cast<int>(worker), kKilled, "", now_ + std::chrono::seconds(seconds));
  }
  /// Lets these workers say bye and their processes end.
  void leave(Supervisor& supervisor, const std::vector<std::size_t>& workers) const {
    for (const std::size_t worker : workers) {
      supervisor.left(worker);
      supervisor.died(static_cast<int>(worker), kExited, "", now_);
    }
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    EXPECT_TRUE(supervisor.is_over());
  }
  std::string lost(const Supervisor& supervisor) const {
    std::string text;
    for (const Loss& loss : supervisor.losses()) {
      text += (text.empty() ? "" : "; ") + to_text(options_.workers[loss.worker].name, loss);
    }
    return text;
  }
  SupervisorOptions options_{.start_timeout = 10s, .stop_timeout = 2s};
  base::TimePoint now_ = base::ManualClock().now();
};

TEST_F(Losing, RN15_RN17_TheRunGoesOnWithoutAWorkerAndSucceeds) {
  Supervisor supervisor = make_running();
  supervisor.died(static_cast<int>(kHelper), kKilled, "step 7", now_ + 2100ms);
  EXPECT_THAT(supervisor.next(now_ + 2100ms), IsEmpty());
  EXPECT_EQ(supervisor.phase(), Phase::running);
  EXPECT_EQ(lost(supervisor), "helper was killed by signal 9 (SIGKILL) in step 7, after 2.1 s");
  supervisor.returned(kFirstTrainer, {});
  supervisor.returned(kSecondTrainer, {});
  EXPECT_THAT(supervisor.next(now_ + 3s), ElementsAre(Action::leave));
  leave(supervisor, {kFirstTrainer, kSecondTrainer, kServer});
  EXPECT_EQ(supervisor.verdict().exit_code, 0);
  EXPECT_EQ(supervisor.verdict().outcome, Verdict::Outcome::success);
  EXPECT_EQ(supervisor.reason().code(), Errc::ok);
}

TEST_F(Losing, RN14_AProcessThatExitsBeforeItsWorkerHasLeftIsLostWhateverTheCode) {
  for (const int code : {0, 3}) {
    Supervisor supervisor = make_running();
    supervisor.died(static_cast<int>(kHelper), {false, code}, "", now_);
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    EXPECT_EQ(lost(supervisor), "helper exited with code " + std::to_string(code) + ", after 0.0 s");
  }
}

TEST_F(Losing, RN14_AnErrorOfAConstructorOrOfRunIsNoLoss) {
  for (const bool in_constructor : {true, false}) {
    Supervisor supervisor = make_running();
    const Error error(Errc::user_error, "trainer-0", "out of luck");
    if (in_constructor) supervisor.failed(kFirstTrainer, error);
    if (!in_constructor) supervisor.returned(kFirstTrainer, error);
    EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
    EXPECT_EQ(supervisor.verdict().exit_code, 1);
    EXPECT_EQ(lost(supervisor), "");
  }
}

TEST_F(Losing, RN15_AWorkerOfARoleThatFailsEndsTheRunAsEver) {
  Supervisor supervisor = make_running();
  kill(supervisor, kHelper);
  kill(supervisor, kServer, 2);
  EXPECT_THAT(supervisor.next(now_ + 2s), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error, "server was killed by signal 9 (SIGKILL) after 2.0 s");
  EXPECT_EQ(supervisor.verdict().exit_code, 1);
  EXPECT_EQ(lost(supervisor), "helper was killed by signal 9 (SIGKILL), after 1.0 s");
}

TEST_F(Losing, RN15_ALossDuringTheStartAlwaysFails) {
  for (const bool met : {false, true}) {
    Supervisor supervisor = make();
    for (std::size_t worker = 0; worker < kWorkers; ++worker) {
      if (met) supervisor.ready(worker);
      if (met && worker != kHelper) supervisor.made(worker);
    }
    supervisor.here(kHelper);
    if (met) supervisor.making(kHelper);
    supervisor.next(now_);
    kill(supervisor, kHelper);
    EXPECT_THAT(supervisor.next(now_ + 1s), ::testing::Contains(Action::stop));
    EXPECT_EQ(supervisor.verdict().error, "helper was killed by signal 9 (SIGKILL) after 1.0 s");
    EXPECT_EQ(lost(supervisor), "");
  }
}

TEST_F(Losing, RN18_TheLastDrivingWorkerIsNotGoneOnWithout) {
  Supervisor supervisor = make_running();
  kill(supervisor, kSecondTrainer, 1);
  EXPECT_THAT(supervisor.next(now_ + 1s), IsEmpty());
  kill(supervisor, kFirstTrainer, 2);
  EXPECT_THAT(supervisor.next(now_ + 2s), ElementsAre(Action::stop, Action::leave));
  EXPECT_EQ(supervisor.verdict().error, "trainer-0 was killed by signal 9 (SIGKILL) after 2.0 s");
  EXPECT_EQ(supervisor.verdict().blame, kFirstTrainer);
  EXPECT_EQ(lost(supervisor), "trainer-1 was killed by signal 9 (SIGKILL), after 1.0 s");
}

TEST_F(Losing, RN17_RN18_ADrivingWorkerThatHasReturnedIsLeftAndALostOneIsNotWaitedFor) {
  Supervisor supervisor = make_running();
  supervisor.returned(kFirstTrainer, {});
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  kill(supervisor, kSecondTrainer);
  EXPECT_THAT(supervisor.next(now_ + 1s), ElementsAre(Action::leave));
  kill(supervisor, kFirstTrainer);  // the run() of the first trainer has returned, so its loss costs nothing
  EXPECT_THAT(supervisor.next(now_ + 1s), IsEmpty());
  leave(supervisor, {kServer, kHelper});
  EXPECT_EQ(supervisor.verdict().exit_code, 0);
  EXPECT_EQ(supervisor.losses().size(), 2U);
}

TEST_F(Losing, RN18_ARunThatCannotDoWithoutALostWorkerFailsItself) {
  Supervisor supervisor = make_running();
  kill(supervisor, kHelper);
  supervisor.next(now_ + 1s);
  supervisor.returned(kFirstTrainer, Error(Errc::peer_down, "helper", "the session with helper has ended"));
  EXPECT_THAT(supervisor.next(now_ + 1s), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error, "trainer-0: peer_down: helper: the session with helper has ended");
  EXPECT_EQ(lost(supervisor), "helper was killed by signal 9 (SIGKILL), after 1.0 s");
}

TEST_F(Losing, RN16_EachLossIsTakenOnceAndItsLaterDeathIsNone) {
  options_.heartbeat = 1s;
  Supervisor supervisor = make_running();
  for (int process = 0; process < static_cast<int>(kWorkers); ++process) supervisor.alive(process, now_);
  for (int second = 1; second <= 5; ++second) {
    EXPECT_THAT(supervisor.take_losses(), IsEmpty()) << second;
    now_ += 1s;
    for (const std::size_t worker : {kFirstTrainer, kSecondTrainer, kServer}) {
      supervisor.alive(static_cast<int>(worker), now_);
    }
    EXPECT_THAT(supervisor.next(now_), IsEmpty()) << "RN2: at second " << second;
  }
  const std::vector<Loss> taken = supervisor.take_losses();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken.front().worker, kHelper);
  EXPECT_THAT(taken.front().why, HasSubstr("has shown no sign of life for 5s (5 of cluster.heartbeat)"));
  kill(supervisor, kHelper, 0);  // as the launcher does
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  EXPECT_THAT(supervisor.take_losses(), IsEmpty());
  EXPECT_EQ(supervisor.losses().size(), 1U);
}

TEST_F(Losing, RN2_AProcessWhoseSignsComeThroughSshMayBeSilentForLonger) {
  options_.heartbeat = 1s;
  options_.workers[kHelper].is_far = true;
  Supervisor supervisor = make_running();
  for (int process = 0; process < static_cast<int>(kWorkers); ++process) supervisor.alive(process, now_);
  for (int second = 1; second <= 12; ++second) {
    EXPECT_THAT(supervisor.take_losses(), IsEmpty()) << second;
    now_ += 1s;
    for (const std::size_t worker : {kFirstTrainer, kSecondTrainer, kServer}) {
      supervisor.alive(static_cast<int>(worker), now_);
    }
    EXPECT_THAT(supervisor.next(now_), IsEmpty()) << second;
  }
  const std::vector<Loss> taken = supervisor.take_losses();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_THAT(taken.front().why, HasSubstr("has shown no sign of life for 12s (12 of cluster.heartbeat)"));
}

TEST_F(Losing, RN16_OfTwoThatLostEachOtherTheOneThatMayBeLostIsGivenUp) {
  for (const bool server_first : {true, false}) {
    Supervisor supervisor = make_running();
    const auto report = [&](std::size_t reporter, std::size_t of) {
      const std::string& name = options_.workers[of].name;
      supervisor.peer_lost(reporter, name, Error(Errc::peer_down, name, "reset"), now_);
    };
    if (server_first) report(kServer, kHelper);
    report(kHelper, kServer);
    if (!server_first) report(kServer, kHelper);
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    EXPECT_EQ(supervisor.deadline(), now_ + 1s);
    EXPECT_THAT(supervisor.next(now_ + 1s), IsEmpty());
    EXPECT_EQ(lost(supervisor), "helper has no session with server any more though both live (reset), after 1.0 s");
  }
}

TEST_F(Losing, RN16_ReportsOfALostWorkerCountNoMore) {
  Supervisor supervisor = make_running();
  const Error reset(Errc::peer_down, "trainer-0", "reset");
  supervisor.peer_lost(kHelper, "trainer-0", reset, now_);
  supervisor.peer_lost(kHelper, "server", reset, now_);
  kill(supervisor, kHelper);
  EXPECT_THAT(supervisor.next(now_ + 1s), IsEmpty());
  EXPECT_EQ(supervisor.losses().size(), 1U);
}

TEST_F(Losing, RN16_WhereNeitherMayBeLostTheRunFails) {
  options_.workers[kHelper].may_be_lost = false;
  Supervisor supervisor = make_running();
  supervisor.peer_lost(kHelper, "server", Error(Errc::peer_down, "server", "reset"), now_);
  EXPECT_THAT(supervisor.next(now_ + 1s), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error, "server: peer_down: reset");
}

TEST_F(Losing, RN15_ALossWhileTheRunEndsChangesNothing) {
  Supervisor interrupted = make_running();
  interrupted.interrupt();
  EXPECT_THAT(interrupted.next(now_), ElementsAre(Action::stop));
  kill(interrupted, kHelper);
  EXPECT_EQ(interrupted.verdict().exit_code, 130);
  Supervisor leaving = make_running();
  leaving.returned(kFirstTrainer, {});
  leaving.returned(kSecondTrainer, {});
  EXPECT_THAT(leaving.next(now_), ElementsAre(Action::leave));
  kill(leaving, kHelper);
  leave(leaving, {kFirstTrainer, kSecondTrainer, kServer});
  EXPECT_EQ(leaving.verdict().exit_code, 0);
}

/// The second trainer and the helper are on another host.
class LosingElsewhere : public Losing {
 protected:
  LosingElsewhere() {
    options_.workers[kSecondTrainer].here = false;
    options_.workers[kHelper].here = false;
  }
};

TEST_F(LosingElsewhere, RN14_RN20_ABrokenSessionIsALossAndIsCountedOnce) {
  Supervisor supervisor = make_running();
  const Error broken(Errc::peer_down, "helper", "lost helper: reset");
  for (const std::size_t reporter : {kFirstTrainer, kServer}) {
    supervisor.peer_lost(reporter, "helper", broken, now_ + 1s);
    EXPECT_THAT(supervisor.next(now_ + 1s), IsEmpty());
  }
  EXPECT_EQ(lost(supervisor), "helper ended without a good-bye (lost helper: reset), after 1.0 s");
  supervisor.peer_lost(kServer, "trainer-1", Error(Errc::peer_down, "trainer-1", "lost trainer-1"), now_ + 1s);
  EXPECT_THAT(supervisor.next(now_ + 1s), IsEmpty());
  supervisor.returned(kFirstTrainer, {});
  EXPECT_THAT(supervisor.next(now_ + 2s), ElementsAre(Action::leave)) << "RN17: nothing waits for trainer-1";
}

TEST_F(LosingElsewhere, RN20_AHostThatEndsOnItsOwnFailsThisOneTooWhateverItsRolesSay) {
  for (const auto& [code, of] : {std::pair(Errc::cancelled, "helper"), std::pair(Errc::peer_down, "trainer-1")}) {
    Supervisor supervisor = make_running();
    supervisor.peer_lost(kServer, "helper", Error(code, of, "why that run ended"), now_);
    EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
    EXPECT_EQ(supervisor.verdict().exit_code, 1);
    EXPECT_EQ(lost(supervisor), "");
  }
}

TEST_F(LosingElsewhere, RN18_RN21_ALossElsewhereAfterItsRunHasReturnedCutsNothingOff) {
  for (const bool has_returned : {true, false}) {
    Supervisor supervisor = make_running();
    if (has_returned) supervisor.peer_returned("trainer-1");
    supervisor.peer_lost(kServer, "trainer-1", Error(Errc::peer_down, "trainer-1", "lost trainer-1"), now_);
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    kill(supervisor, kFirstTrainer);
    supervisor.next(now_ + 1s);
    EXPECT_EQ(supervisor.verdict().exit_code, has_returned ? 0 : 1);
  }
}

TEST_F(LosingElsewhere, RN18_WithoutItsLastDrivingWorkerTheRunFails) {
  options_.workers[kFirstTrainer].drives = false;
  Supervisor supervisor = make_running();
  supervisor.peer_lost(kServer, "trainer-1", Error(Errc::peer_down, "trainer-1", "lost trainer-1"), now_);
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop, Action::leave));
  EXPECT_EQ(supervisor.verdict().error, "trainer-1: peer_down: lost trainer-1");
}

}  // namespace
}  // namespace caftan::run::supervisor_loss_test
