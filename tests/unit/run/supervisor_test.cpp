// What a run does next, event by event.
#include <memory>

#include "supervised.hpp"

namespace caftan::run::supervisor_test {
namespace {

TEST_F(Supervised, EndsWellWhenEveryRunHasReturned) {
  Supervisor supervisor = make_running();
  supervisor.returned(kAgent, {});
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::leave));
  all_leave(supervisor);
  EXPECT_EQ(supervisor.verdict().exit_code, 0);
}

TEST_F(Supervised, ARunThatReturnsAnErrorFails) {
  Supervisor supervisor = make_running();
  supervisor.returned(kAgent, Error(Errc::goal_missed, "agent", "not good enough"));
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop, Action::leave));
  all_leave(supervisor);
  EXPECT_EQ(supervisor.verdict().exit_code, 1);
  EXPECT_EQ(supervisor.verdict().error, "agent: goal_missed: not good enough");
  EXPECT_EQ(supervisor.verdict().code, Errc::goal_missed);
}

TEST_F(Supervised, BI2_NamesWhoHasNotComeInTime) {
  Supervisor supervisor = make();
  supervisor.here(kAgent);
  supervisor.here(kSecond);
  EXPECT_EQ(supervisor.deadline(), now_ + 10s);
  EXPECT_THAT(supervisor.next(now_ + 9s), IsEmpty());
  now_ += 10s;
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error,
            "start: observer-0 has not come within 10s (run.start_timeout); 2 of 3 are here");
  EXPECT_EQ(supervisor.verdict().blame, kFirst);
}

TEST_F(Supervised, U12_SaysWhoLivesAndWhatMayHelp) {
  Supervisor supervisor = make({}, 1s);
  supervisor.here(kAgent);
  supervisor.next(now_ + 10s);
  EXPECT_EQ(
      supervisor.verdict().error,
      "start: observer-0, observer-1 have not come within 10s (run.start_timeout); 1 of 3 are here; the processes "
      "of all 2 live: if the machine is busy, raise run.start_timeout");
  Supervisor one = make({}, 1s);
  one.here(kAgent);
  one.here(kFirst);
  one.next(now_ + 10s);
  EXPECT_THAT(one.verdict().error, HasSubstr("; 2 of 3 are here; its process lives: if the machine is busy, raise "));
}

TEST_F(Supervised, K15_RN8_TimeInWhichTheLauncherWasStoppedIsNotOfTheStart) {
  Supervisor supervisor = make();
  supervisor.here(kAgent);
  supervisor.unwatched(1min);
  EXPECT_THAT(supervisor.next(now_ + 1min + 9s), IsEmpty());
  EXPECT_EQ(supervisor.deadline(), now_ + 1min + 10s);
  EXPECT_THAT(supervisor.next(now_ + 1min + 10s), ElementsAre(Action::stop));
}

TEST_F(Supervised, K15_RN8_NorOfConstructorsAndEndings) {
  Supervisor supervisor = make();
  for (const std::size_t worker : {kAgent, kFirst, kSecond}) supervisor.ready(worker);
  supervisor.next(now_);
  supervisor.unwatched(1min);
  EXPECT_THAT(supervisor.next(now_ + 1min + 9s), IsEmpty());
  supervisor.interrupt();
  EXPECT_THAT(supervisor.next(now_ + 1min + 9s), ElementsAre(Action::stop));
  supervisor.unwatched(1min);
  EXPECT_THAT(supervisor.next(now_ + 2min + 9900ms), IsEmpty());
  EXPECT_THAT(supervisor.next(now_ + 2min + 11s), ElementsAre(Action::leave, Action::kill));
}

TEST_F(Supervised, K15_RN8_TheWallIsAWall) {
  Supervisor supervisor = make_running(1min);
  supervisor.unwatched(1min);
  EXPECT_THAT(supervisor.next(now_ + 1min), ElementsAre(Action::stop));
}

TEST_F(Supervised, BI2_WhoIsHereMaySayItselfWhomItMisses) {
  Supervisor supervisor = make();
  for (const std::size_t worker : {kAgent, kFirst, kSecond}) supervisor.here(worker);
  now_ += 10s;
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  supervisor.failed(kFirst, Error(Errc::not_authenticated, "observer-0", "another secret"));
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error, "observer-0: not_authenticated: another secret");
}

TEST_F(Supervised, BI2_NamesWhoseConstructorDoesNotReturn) {
  for (const bool both : {false, true}) {
    Supervisor supervisor = make();
    for (const std::size_t worker : {kAgent, kFirst, kSecond}) supervisor.ready(worker);
    supervisor.made(kAgent);
    if (!both) supervisor.made(kFirst);
    EXPECT_THAT(supervisor.next(now_ + 1s), IsEmpty());
    EXPECT_EQ(supervisor.deadline(), now_ + 11s);
    EXPECT_THAT(supervisor.next(now_ + 11s), ElementsAre(Action::stop));
    EXPECT_EQ(supervisor.verdict().error,
              both ? "start: the constructors of observer-0 (role 'observer'), observer-1 (role 'observer') have not "
                     "returned within 10s (run.start_timeout)"
                   : "start: the constructor of observer-1 (role 'observer') has not returned within 10s "
                     "(run.start_timeout)");
    EXPECT_EQ(supervisor.verdict().exit_code, 1);
  }
}

TEST_F(Supervised, BI2_WhoCouldNotEvenBeginIsNotBlamed) {
  Supervisor supervisor = make();
  for (const std::size_t worker : {kAgent, kFirst, kSecond}) supervisor.ready(worker);
  supervisor.making(kFirst);
  supervisor.next(now_);
  supervisor.next(now_ + 10s);
  EXPECT_THAT(supervisor.verdict().error, HasSubstr("the constructor of observer-0 (role 'observer') has not"));
}

TEST_F(Supervised, BI2_ConstructorsThatHaveReturnedAreNotWaitedFor) {
  Supervisor supervisor = make_running();
  EXPECT_THAT(supervisor.next(now_ + 1h), IsEmpty());
  EXPECT_EQ(supervisor.deadline(), base::kNever);
}

TEST_F(Supervised, ARunDoesNotWaitForAProcessThatCouldNotBeStarted) {
  Supervisor supervisor = make();
  supervisor.broken(Error(Errc::io_error, "cannot start observer-0: Too many open files"));
  supervisor.not_started(1);
  supervisor.not_started(2);
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
  supervisor.died(0, kExited, "", now_);
  supervisor.next(now_);
  EXPECT_TRUE(supervisor.is_over());
  EXPECT_EQ(supervisor.verdict().exit_code, 1);
  EXPECT_EQ(supervisor.verdict().error, "cannot start observer-0: Too many open files");
}

TEST_F(Supervised, WhatARoleRefusesIsNoMatterOfTheStartThoughOthersStillStart) {
  Supervisor supervisor = make();
  supervisor.ready(kAgent);
  supervisor.returned(kAgent, Error(Errc::invalid_config, "agent", "a config that only the role can judge"));
  supervisor.next(now_);
  EXPECT_EQ(supervisor.verdict().exit_code, 1);
}

TEST_F(Supervised, BI2_MembersOfDifferentFilesAreAMatterOfTheCommandLine) {
  Supervisor supervisor = make();
  supervisor.failed(kAgent, Error(Errc::invalid_config, "agent", "another file"));
  supervisor.next(now_);
  EXPECT_EQ(supervisor.verdict().exit_code, 2);
  Supervisor running = make_running();
  running.returned(kAgent, Error(Errc::invalid_config, "agent", "a config that only the role can judge"));
  running.next(now_);
  EXPECT_EQ(running.verdict().exit_code, 1);
}

TEST_F(Supervised, BI6_ADeathIsNamedWithItsEcho) {
  // In either order: the agent may learn of the observer's death before the launcher does.
  for (const bool echo_first : {true, false}) {
    Supervisor supervisor = make_running();
    const Error echo(Errc::peer_down, "observer-0", "connection reset");
    if (echo_first) supervisor.returned(kAgent, echo);
    supervisor.died(1, kKilled, "episode 121", now_ + 2100ms);
    if (!echo_first) supervisor.returned(kAgent, echo);
    supervisor.next(now_);
    EXPECT_EQ(supervisor.verdict().error,
              "observer-0 was killed by signal 9 (SIGKILL) in episode 121, 2.1 s; agent: peer_down: observer-0: "
              "connection reset");
    EXPECT_EQ(supervisor.verdict().blame, kFirst);
    EXPECT_EQ(supervisor.verdict().exit_code, 1);
  }
}

TEST_F(Supervised, BI6_ARoleThatStopsBecauseOfADeathDoesNotHideIt) {
  Supervisor supervisor = make_running();
  supervisor.died(1, kKilled, "", now_ + 1s);
  EXPECT_THAT(supervisor.next(now_ + 1s), ElementsAre(Action::stop));
  supervisor.returned(kAgent, Error(Errc::cancelled, "agent", "stopped after 40 steps"));
  EXPECT_EQ(supervisor.verdict().error, "observer-0 was killed by signal 9 (SIGKILL) after 1.0 s");
  EXPECT_EQ(supervisor.verdict().code, Errc::peer_down);
  EXPECT_EQ(supervisor.verdict().blame, kFirst);
}

TEST_F(Supervised, RN23_AGoalMissedBecauseOfTheStopDoesNotHideTheDeath) {
  Supervisor supervisor = make_running();
  supervisor.died(1, kKilled, "", now_ + 1s);
  EXPECT_THAT(supervisor.next(now_ + 1s), ElementsAre(Action::stop));
  supervisor.returned(kAgent, Error(Errc::goal_missed, "agent", "accuracy 0.771"));
  supervisor.next(now_ + 1s);
  EXPECT_EQ(supervisor.verdict().error,
            "observer-0 was killed by signal 9 (SIGKILL) after 1.0 s; agent: goal_missed: accuracy 0.771");
  EXPECT_EQ(supervisor.verdict().blame, kFirst);
  EXPECT_EQ(supervisor.reason().code(), Errc::peer_down);
}

TEST_F(Supervised, RN23_AnErrorThatIsReadBeforeTheDeathDoesNotHideIt) {
  // The agent learns of the observer's end before the launcher does, and returns an error of its own for it.
  for (const bool stop_was_sent : {false, true}) {
    Supervisor supervisor = make_running({}, 1s);
    for (const int process : {0, 1, 2}) supervisor.alive(process, now_);
    supervisor.returned(kAgent, Error(Errc::goal_missed, "agent", "accuracy 0.771"));
    if (stop_was_sent) supervisor.next(now_);
    supervisor.died(1, kKilled, "", now_);
    supervisor.next(now_);
    EXPECT_EQ(supervisor.verdict().blame, kFirst) << "stop was sent: " << stop_was_sent;
  }
}

TEST_F(Supervised, RN23_AProcessThatCrashesBecauseOfTheStopIsNotTheCause) {
  Supervisor supervisor = make_running({}, 1s);
  for (const int process : {0, 1, 2}) supervisor.alive(process, now_);
  supervisor.returned(kAgent, Error(Errc::goal_missed, "agent", "accuracy 0.771"));
  supervisor.next(now_);
  supervisor.answered(1);
  supervisor.died(1, kKilled, "", now_);
  EXPECT_EQ(supervisor.verdict().error, "agent: goal_missed: accuracy 0.771");
}

TEST_F(Supervised, BI6_OnlyTheFirstDeathIsNamed) {
  Supervisor supervisor = make_running();
  supervisor.died(2, {false, 3}, "", now_ + 1s);
  supervisor.died(1, kKilled, "", now_ + 1s);
  EXPECT_EQ(supervisor.verdict().error, "observer-1 exited with code 3 after 1.0 s");
}

TEST_F(Supervised, AReasonOfItsOwnIsNotHiddenByALaterDeath) {
  Supervisor supervisor = make_running();
  supervisor.returned(kAgent, Error(Errc::goal_missed, "agent", "not good enough"));
  supervisor.next(now_);
  supervisor.died(1, kKilled, "", now_);
  EXPECT_EQ(supervisor.verdict().error, "agent: goal_missed: not good enough");
}

TEST_F(Supervised, BI8_TheFirstInterruptStopsAndTheSecondKills) {
  Supervisor supervisor = make_running();
  supervisor.interrupt();
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  supervisor.interrupt();
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::kill));
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  for (int process = 0; process < 3; ++process) supervisor.died(process, kKilled, "", now_);
  supervisor.next(now_);
  EXPECT_TRUE(supervisor.is_over());
  EXPECT_EQ(supervisor.verdict().exit_code, 130);
}

TEST_F(Supervised, BI8_WhoDoesNotLeaveIsKilledAfterStopTimeout) {
  Supervisor supervisor = make_running();
  supervisor.interrupt();
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
  // Half of stop_timeout has passed, and run() has not returned.
  EXPECT_THAT(supervisor.next(now_ + 1s), ElementsAre(Action::leave));
  EXPECT_EQ(supervisor.deadline(), now_ + 2s);
  EXPECT_THAT(supervisor.next(now_ + 2s), ElementsAre(Action::kill));
  EXPECT_EQ(supervisor.deadline(), base::kNever);
}

TEST_F(Supervised, BI8_WhatARoleSaysAfterAnInterruptIsNoFailure) {
  Supervisor supervisor = make_running();
  supervisor.interrupt();
  supervisor.next(now_);
  supervisor.returned(kAgent, Error(Errc::cancelled, "agent", "stopped"));
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::leave));
  all_leave(supervisor);
  EXPECT_EQ(supervisor.verdict().exit_code, 130);
}

TEST_F(Supervised, ARunBeyondItsWallFails) {
  Supervisor supervisor = make_running(10min);
  EXPECT_EQ(supervisor.deadline(), now_ + 10min);
  EXPECT_THAT(supervisor.next(now_ + 10min), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error, "the run took longer than 10min (run.wall)");
}

TEST_F(Supervised, OnOtherHostsADriverThatLeftEndsTheRun) {
  Supervisor supervisor({.workers = {{.name = "agent", .process = 0, .drives = true, .here = false},
                                     {.name = "observer-0", .process = 1}},
                         .start_timeout = 10s,
                         .stop_timeout = 2s},
                        now_);
  supervisor.ready(1);
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  supervisor.peer_lost(1, "agent", Error(Errc::shut_down, "agent", "agent has left"), now_);
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::leave));
  supervisor.left(1);
  supervisor.died(1, kExited, "", now_);
  supervisor.next(now_);
  EXPECT_TRUE(supervisor.is_over());
  EXPECT_EQ(supervisor.verdict().exit_code, 0);
}

TEST_F(Supervised, RN21_HostsWithADriverEachLeaveOnceBothRunsHaveReturned) {
  const auto make_host = [this](std::size_t driver) {
    return Supervisor({.workers = {{.name = "trainer-0", .process = 0, .drives = true, .here = driver == 0},
                                   {.name = "trainer-1", .process = 1, .drives = true, .here = driver == 1}},
                       .start_timeout = 10s,
                       .stop_timeout = 2s},
                      now_);
  };
  Supervisor first = make_host(0);
  Supervisor second = make_host(1);
  first.ready(0);
  second.ready(1);
  EXPECT_THAT(first.next(now_), IsEmpty());
  EXPECT_THAT(second.next(now_), IsEmpty());
  first.returned(0, {});
  EXPECT_THAT(first.next(now_), IsEmpty()) << "it still serves trainer-1";
  second.peer_returned("trainer-0");
  EXPECT_THAT(second.next(now_), IsEmpty()) << "its own driver is running";
  second.returned(1, {});
  EXPECT_THAT(second.next(now_), ElementsAre(Action::leave)) << "trainer-0 has not left";
  first.peer_returned("trainer-1");
  EXPECT_THAT(first.next(now_), ElementsAre(Action::leave));
  // A host whose run() has returned as well says good-bye.
  first.peer_lost(0, "trainer-1", Error(Errc::shut_down, "trainer-1", "trainer-1 has left"), now_);
  first.left(0);
  first.died(0, kExited, "", now_);
  first.next(now_);
  EXPECT_TRUE(first.is_over());
  EXPECT_EQ(first.verdict().exit_code, 0);
}

TEST_F(Supervised, RN21_AReportFromElsewhereCountsForNoWorkerOfThisHost) {
  Supervisor supervisor = make_running();
  supervisor.peer_returned("agent");
  supervisor.peer_returned("agent-7");
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  EXPECT_EQ(supervisor.phase(), Phase::running);
}

TEST_F(Supervised, OnOtherHostsADriverThatFailedAndLeftFailsTheRun) {
  Supervisor supervisor({.workers = {{.name = "agent", .process = 0, .drives = true, .here = false},
                                     {.name = "observer-0", .process = 1},
                                     {.name = "observer-1", .process = 2, .here = false}},
                         .start_timeout = 10s,
                         .stop_timeout = 2s},
                        now_);
  supervisor.ready(1);
  supervisor.next(now_);
  // A worker that ended because of the agent says so too, and its report may be the first to arrive.
  supervisor.peer_lost(1, "observer-1", Error(Errc::goal_missed, "agent", "not good enough"), now_);
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
  supervisor.peer_lost(1, "agent", Error(Errc::goal_missed, "agent", "not good enough"), now_);
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::leave));
  EXPECT_EQ(supervisor.reason().message(), "goal_missed: agent: not good enough");
  supervisor.left(1);
  supervisor.died(1, kExited, "", now_);
  supervisor.next(now_);
  EXPECT_EQ(supervisor.verdict().exit_code, 1);
  EXPECT_EQ(supervisor.verdict().error, "agent: goal_missed: not good enough");
}

TEST_F(Supervised, K11_WhyAnotherHostLeftReplacesItsEchoHere) {
  // The agent's role fails because the loss of the observer ended its calls; the observer's own reason may arrive
  // before or after the end of the run has begun.
  for (const bool begun : {false, true}) {
    Supervisor supervisor({.workers = {{.name = "agent", .process = 0, .drives = true},
                                       {.name = "observer", .process = 1, .here = false}},
                           .start_timeout = 10s,
                           .stop_timeout = 2s},
                          now_);
    supervisor.ready(0);
    supervisor.next(now_);
    supervisor.returned(0, Error(Errc::peer_down, "observer", "the session with observer has ended"));
    if (begun) {
      EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop, Action::leave));
    }
    supervisor.peer_lost(0, "observer", Error(Errc::cancelled, "observer", "the run was interrupted"), now_);
    supervisor.next(now_);
    EXPECT_EQ(supervisor.verdict().error, "observer: cancelled: the run was interrupted");
    EXPECT_EQ(supervisor.verdict().exit_code, 1);
  }
}

TEST_F(Supervised, GivesOtherHostsTheReasonOfAFailure) {
  EXPECT_EQ(make_running().reason().code(), Errc::ok);
  Supervisor interrupted = make_running();
  interrupted.interrupt();
  EXPECT_EQ(interrupted.reason().code(), Errc::cancelled);
  Supervisor late = make_running(10min);
  late.next(now_ + 10min);
  EXPECT_EQ(late.reason().code(), Errc::timeout);
  Supervisor died = make_running();
  died.died(1, kKilled, "", now_ + 1s);
  EXPECT_EQ(died.reason().message(), "peer_down: observer-0: observer-0 was killed by signal 9 (SIGKILL) after 1.0 s");
}

TEST_F(Supervised, TheReasonForOtherHostsIsNoGoodByeAndAnEchoStaysOne) {
  Supervisor refused = make_running();
  refused.returned(kAgent, Error(Errc::shut_down, "observer-0", "observer-0 has left"));
  EXPECT_EQ(refused.reason().code(), Errc::peer_down);
  Supervisor failed = make_running();
  const std::string long_text(1000, 'x');
  failed.returned(kAgent, Error(Errc::backward_failed, "agent", long_text,
                                std::make_shared<const Error>(Errc::peer_down, "observer-0", long_text)));
  const Error reported = failed.reason();
  ASSERT_NE(reported.cause(), nullptr);
  EXPECT_EQ(reported.cause()->code(), Errc::peer_down);
  EXPECT_LT(reported.message().size(), 600U);
}

TEST_F(Supervised, OnOtherHostsADriverThatIsLostFailsTheRun) {
  Supervisor supervisor({.workers = {{.name = "agent", .process = 0, .drives = true, .here = false},
                                     {.name = "observer-0", .process = 1}},
                         .start_timeout = 10s,
                         .stop_timeout = 2s},
                        now_);
  supervisor.ready(1);
  supervisor.next(now_);
  supervisor.peer_lost(1, "agent", Error(Errc::peer_down, "agent", "lost agent: reset"), now_);
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop, Action::leave));
  supervisor.left(1);
  supervisor.died(1, kExited, "", now_);
  supervisor.next(now_);
  EXPECT_EQ(supervisor.verdict().exit_code, 1);
  EXPECT_EQ(supervisor.verdict().error, "agent: peer_down: lost agent: reset");
}

TEST_F(Supervised, AWorkerThatTheOthersLostThoughItsProcessLivesFailsTheRun) {
  Supervisor supervisor = make_running();
  supervisor.peer_lost(kFirst, "agent", Error(Errc::peer_down, "agent", "no bytes for 5s"), now_);
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  EXPECT_EQ(supervisor.deadline(), now_ + 1s);
  EXPECT_THAT(supervisor.next(now_ + 1s), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error, "agent: peer_down: no bytes for 5s");
}

TEST_F(Supervised, TheDeathOfAWorkerSaysMoreThanThatTheOthersLostIt) {
  Supervisor supervisor = make_running();
  supervisor.peer_lost(kAgent, "observer-0", Error(Errc::peer_down, "observer-0", "lost observer-0"), now_);
  supervisor.died(1, {true, 9}, "", now_ + 10ms);
  supervisor.next(now_ + 10ms);
  supervisor.next(now_ + 1s);
  EXPECT_THAT(supervisor.verdict().error, HasSubstr("observer-0 was killed by signal 9"));
}

}  // namespace
}  // namespace caftan::run::supervisor_test
