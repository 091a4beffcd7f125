// Which worker a run names when the run ends because a process is silent, or although a process does not leave.
#include "supervised.hpp"

namespace caftan::run::supervisor_end_test {
namespace {

constexpr const char* kSilent =
    "observer-0 has shown no sign of life for 5s (5 of cluster.heartbeat): it is stopped, or its machine is overloaded";

/// A supervised run whose processes show signs of life each second, unless the test says otherwise.
class Watched : public Supervised {
 protected:
  Supervisor make_watched() {
    Supervisor supervisor = make_running({}, 1s);
    for (const int process : {0, 1, 2}) supervisor.alive(process, now_);
    EXPECT_THAT(supervisor.next(now_), IsEmpty());
    return supervisor;
  }
  /// Moves the time by a second, in which `processes` show signs of life. Returns the supervisor's next actions.
  std::vector<Action> beat(Supervisor& supervisor, const std::vector<int>& processes) {
    now_ += 1s;
    for (const int process : processes) supervisor.alive(process, now_);
    return supervisor.next(now_);
  }
  void kill_all(Supervisor& supervisor) {
    for (int process = 0; process < 3; ++process) supervisor.died(process, kKilled, "", now_);
    supervisor.next(now_);
    EXPECT_TRUE(supervisor.is_over());
  }
};

TEST_F(Watched, RN2_ASilentProcessIsLostAfterFiveBeats) {
  Supervisor supervisor = make_watched();
  EXPECT_LE(supervisor.deadline(), now_ + 1s);
  for (int second = 1; second < 5; ++second) EXPECT_THAT(beat(supervisor, {0, 2}), IsEmpty()) << second;
  EXPECT_THAT(beat(supervisor, {0, 2}), ElementsAre(Action::stop));
  EXPECT_EQ(supervisor.verdict().error, kSilent);
  EXPECT_EQ("observer-0 " + supervisor.verdict().death, kSilent);
  EXPECT_EQ(supervisor.verdict().blame, kFirst);
  EXPECT_EQ(supervisor.verdict().exit_code, 1);
  EXPECT_EQ(supervisor.reason().code(), Errc::peer_down);
}

TEST_F(Watched, RN2_AllOfThemMayBeSilent) {
  Supervisor supervisor = make_watched();
  for (int second = 1; second < 5; ++second) beat(supervisor, {});
  EXPECT_THAT(beat(supervisor, {}), ElementsAre(Action::stop));
  EXPECT_THAT(supervisor.verdict().error, HasSubstr("agent has shown no sign of life for 5s"));
}

TEST_F(Watched, RN2_WhatOthersSayOfTheSameLossIsItsEcho) {
  // In either order: the agent may declare observer-0 lost before the launcher does.
  for (const bool echo_first : {true, false}) {
    Supervisor supervisor = make_watched();
    const Error echo(Errc::peer_down, "observer-0", "no bytes from observer-0");
    for (int second = 1; second < 5; ++second) beat(supervisor, {0, 2});
    if (echo_first) {
      supervisor.returned(kAgent, echo);
      EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop, Action::leave));
    }
    beat(supervisor, {0, 2});
    if (!echo_first) supervisor.returned(kAgent, echo);
    EXPECT_EQ(supervisor.verdict().error,
              std::string(kSilent) + "; agent: peer_down: observer-0: no bytes from observer-0");
    EXPECT_EQ(supervisor.verdict().blame, kFirst);
  }
}

TEST_F(Watched, RN2_OneThatHasShownNoSignYetIsLeftToTheStartTimeout) {
  Supervisor supervisor = make({}, 1s);
  supervisor.alive(0, now_);
  for (int second = 1; second < 10; ++second) EXPECT_THAT(beat(supervisor, {0}), IsEmpty()) << second;
  EXPECT_THAT(beat(supervisor, {0}), ElementsAre(Action::stop));
  EXPECT_THAT(supervisor.verdict().error, HasSubstr("have not come within 10s"));
}

TEST_F(Watched, RN2_WhoHasGoneOwesNoSignOfLife) {
  Supervisor supervisor = make_watched();
  supervisor.returned(kAgent, {});
  supervisor.next(now_);
  for (int process = 0; process < 2; ++process) {
    supervisor.left(static_cast<std::size_t>(process));
    supervisor.died(process, kExited, "", now_);
  }
  supervisor.left(kSecond);
  supervisor.died(2, kExited, "", now_);
  supervisor.next(now_ + 1h);
  EXPECT_EQ(supervisor.verdict().exit_code, 0);
}

TEST_F(Watched, RN3_TimeInWhichTheLauncherWasStoppedIsNoSilence) {
  Supervisor supervisor = make_watched();
  now_ += 1h;
  EXPECT_THAT(supervisor.next(now_), IsEmpty());
  EXPECT_THAT(beat(supervisor, {0, 1, 2}), IsEmpty());
  for (int second = 1; second < 5; ++second) EXPECT_THAT(beat(supervisor, {0, 2}), IsEmpty()) << second;
  EXPECT_THAT(beat(supervisor, {0, 2}), ElementsAre(Action::stop));
}

TEST_F(Watched, RN3_StoppedAgainAndAgainItStillCountsItsOwnTurnsOnly) {
  Supervisor supervisor = make_watched();
  for (int turn = 1; turn < 5; ++turn) {
    now_ += 1min;
    EXPECT_THAT(supervisor.next(now_), IsEmpty()) << turn;
  }
}

TEST_F(Watched, WithoutProcessesNoSilenceIsJudged) {
  Supervisor supervisor = make_running();
  supervisor.alive(0, now_);
  for (int second = 0; second < 60; ++second) EXPECT_THAT(beat(supervisor, {}), IsEmpty());
  EXPECT_EQ(supervisor.deadline(), base::kNever);
}

TEST_F(Watched, ALossIsNotNamedTwice) {
  Supervisor supervisor = make_running();
  supervisor.peer_lost(kAgent, "observer-0", Error(Errc::peer_down, "observer-0", "lost observer-0"), now_);
  supervisor.next(now_ + 1s);
  supervisor.died(1, kKilled, "", now_ + 2s);
  EXPECT_EQ(supervisor.verdict().error, "observer-0 was killed by signal 9 (SIGKILL) after 2.0 s");
}

TEST_F(Watched, RN4_AProcessThatDoesNotAnswerIsNamedNotThoseThatWaitForIt) {
  Supervisor supervisor = make_watched();
  supervisor.interrupt();
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop));
  for (const int process : {0, 1, 2}) supervisor.answered(process);
  EXPECT_THAT(beat(supervisor, {0, 2}), ElementsAre(Action::leave));
  for (const int process : {0, 2}) supervisor.answered(process);
  EXPECT_THAT(beat(supervisor, {0, 2}), ElementsAre(Action::kill));
  kill_all(supervisor);
  EXPECT_EQ(supervisor.stragglers(), "observer-0 had not answered within 2s (run.stop_timeout) and was killed");
  EXPECT_EQ(supervisor.verdict().exit_code, 130);
}

TEST_F(Watched, RN4_AmongThoseThatAnswerTheOneThatDoesNotReturnIsNamed) {
  Supervisor supervisor = make_watched();
  supervisor.interrupt();
  supervisor.next(now_);
  for (const int process : {0, 1, 2}) supervisor.answered(process);
  beat(supervisor, {0, 1, 2});
  for (const int process : {0, 1, 2}) supervisor.answered(process);
  beat(supervisor, {0, 1, 2});
  kill_all(supervisor);
  EXPECT_EQ(supervisor.stragglers(), "agent had not returned from run() within 2s (run.stop_timeout) and was killed");
}

TEST_F(Watched, RN4_ElseAllAreNamed) {
  Supervisor supervisor = make_watched();
  supervisor.returned(kAgent, {});
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::leave));
  for (const int process : {0, 1, 2}) supervisor.answered(process);
  supervisor.left(kAgent);
  supervisor.died(0, kExited, "", now_);
  beat(supervisor, {1, 2});
  EXPECT_THAT(beat(supervisor, {1, 2}), ElementsAre(Action::kill));
  kill_all(supervisor);
  EXPECT_EQ(supervisor.stragglers(),
            "observer-0, observer-1 had not left within 2s (run.stop_timeout) and were killed");
}

TEST_F(Watched, RN4_ASecondInterruptIsTheReasonNotTheTimeout) {
  Supervisor supervisor = make_watched();
  supervisor.interrupt();
  supervisor.next(now_);
  for (const int process : {0, 2}) supervisor.answered(process);
  supervisor.interrupt();
  EXPECT_THAT(supervisor.next(now_ + 10ms), ElementsAre(Action::kill));
  kill_all(supervisor);
  EXPECT_EQ(supervisor.stragglers(), "observer-0 had not answered when the second Ctrl-C came and was killed");
}

TEST_F(Watched, RN4_WhoWasLostAnywayIsNotNamedTwice) {
  Supervisor supervisor = make_watched();
  for (int second = 1; second <= 5; ++second) beat(supervisor, {0, 2});
  for (const int process : {0, 2}) supervisor.answered(process);
  EXPECT_THAT(beat(supervisor, {0, 2}), ElementsAre(Action::leave));
  for (const int process : {0, 2}) supervisor.answered(process);
  EXPECT_THAT(beat(supervisor, {0, 2}), ElementsAre(Action::kill));
  kill_all(supervisor);
  EXPECT_EQ(supervisor.verdict().error, kSilent);
  EXPECT_EQ(supervisor.stragglers(), "");
}

TEST_F(Watched, RN4_WhoHasNotComeWasNotAsked) {
  SupervisorOptions options{.start_timeout = 1s, .stop_timeout = 2s, .heartbeat = 1s};
  for (int i = 0; i < 40; ++i) options.workers.push_back({.name = "w-" + std::to_string(i), .process = i});
  Supervisor supervisor(options, now_);
  for (std::size_t i = 0; i < 10; ++i) supervisor.here(i);
  now_ += 1s;
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::stop, Action::leave));
  now_ += 2s;
  EXPECT_THAT(supervisor.next(now_), ElementsAre(Action::kill));
  for (int i = 0; i < 40; ++i) supervisor.died(i, kKilled, "", now_);
  EXPECT_EQ(supervisor.stragglers(),
            "w-0, w-1, w-2, w-3, w-4, w-5, w-6, w-7 and 2 more had not answered within 2s (run.stop_timeout) and were "
            "killed");
}

}  // namespace
}  // namespace caftan::run::supervisor_end_test
