// WorkerPass event by event: what a participant of a pass does. Message 1 of A was sent to B, messages 1 and 2 of B to
// A.
#include "caftan/autograd/internal/worker_pass.hpp"

#include <gtest/gtest.h>

#include "pass_events.hpp"

namespace caftan::autograd::worker_pass_test {
namespace {

using Phase = WorkerPass::Phase;
constexpr AutogradMessageId kAtoB = message_of(kA, 1);
constexpr AutogradMessageId kBtoA = message_of(kB, 1);
constexpr AutogradMessageId kBtoA2 = message_of(kB, 2);

// B takes part in a pass that A runs.
class WorkerPassTest : public ::testing::Test {
 protected:
  WorkerPassTest() {
    sent.to[kBtoA] = kA;
    sent.to[kBtoA2] = kA;
  }
  WorkerPass participant(Mode mode = Mode::smart, PassLimits limits = {}) {
    return WorkerPass(kB, header(1, kA, mode), sent, limits);
  }
  // Returns a participant whose message kBtoA was marked; its walk has ended and has found kAtoB.
  WorkerPass walked(PassLimits limits = {}) {
    WorkerPass pass = participant(Mode::smart, limits);
    pass.marked(kA, {kBtoA});
    pass.found({{kContext, kAtoB}});
    pass.walked();
    return pass;
  }
  Sent sent;
};

Errc failure(const PassActions& actions) {
  const auto fails = sent_to<Fail>(kA, actions);
  return fails.empty() ? Errc::ok : fails[0].error.code();
}

TEST_F(WorkerPassTest, DA4_ReportsOnlyWhatHasBeenWalked) {
  WorkerPass pass = participant();
  PassActions actions = pass.marked(kA, {kBtoA});
  EXPECT_EQ(all_of<WalkGraph>(actions).at(0).messages, std::vector{kBtoA});
  EXPECT_TRUE(all_of<Send>(actions).empty());
  actions = pass.found({{kContext, kAtoB}});
  EXPECT_EQ(sent_to<Mark>(kA, actions).at(0).messages, std::vector{kAtoB});
  EXPECT_TRUE(sent_to<Report>(kA, actions).empty());
  const Report report = sent_to<Report>(kA, pass.walked()).at(0);
  EXPECT_EQ(report.done, std::vector{kBtoA});
  EXPECT_EQ(report.spawned, std::vector{kAtoB});
}

TEST_F(WorkerPassTest, MarksThatArriveDuringAWalkAreWalkedNext) {
  WorkerPass pass = participant();
  pass.marked(kA, {kBtoA});
  EXPECT_TRUE(pass.marked(kA, {kBtoA2}).empty());
  const PassActions actions = pass.walked();
  EXPECT_EQ(sent_to<Report>(kA, actions).at(0).done, std::vector{kBtoA});
  EXPECT_EQ(all_of<WalkGraph>(actions).at(0).messages, std::vector{kBtoA2});
}

TEST_F(WorkerPassTest, RunsAtTheFirstGradientAndIsDoneWhenAllHaveArrived) {
  WorkerPass pass = walked();
  pass.marked(kA, {kBtoA2});
  pass.walked();
  const auto first = all_of<RunGraph>(pass.gradient(kA, kBtoA, 8));
  EXPECT_FALSE(first.at(0).sources_counted);
  EXPECT_EQ(first[0].sources.size(), 2u);
  EXPECT_EQ(first[0].feed, std::vector{kBtoA});
  EXPECT_TRUE(pass.gradient(kA, kBtoA2, 8).empty());
  const auto second = all_of<RunGraph>(pass.ran({false, 0}));
  EXPECT_TRUE(second.at(0).sources_counted);
  EXPECT_EQ(second[0].feed, std::vector{kBtoA2});
  EXPECT_EQ(sent_to<Grad>(kA, pass.produced(kAtoB)).at(0).message, kAtoB);
  EXPECT_EQ(sent_to<Done>(kA, pass.ran({true, 0})).size(), 1u);
  EXPECT_EQ(pass.phase(), Phase::done);
}

TEST_F(WorkerPassTest, DA6_ARunThatForgetsAnRNodeFails) {
  WorkerPass pass = walked();
  pass.gradient(kA, kBtoA, 8);
  EXPECT_EQ(failure(pass.ran({true, 0})), Errc::backward_failed);
}

TEST_F(WorkerPassTest, DA6_ASecondGradientOfOneMessageFails) {
  WorkerPass pass = walked();
  pass.gradient(kA, kBtoA, 8);
  EXPECT_EQ(failure(pass.gradient(kA, kBtoA, 8)), Errc::invalid_gradient);
}

TEST_F(WorkerPassTest, DA6_AGradientForAnUnmarkedMessageFails) {
  WorkerPass pass = walked();
  EXPECT_EQ(failure(pass.gradient(kA, kBtoA2, 8)), Errc::invalid_gradient);
}

TEST_F(WorkerPassTest, DA5_AnRNodeMetTwiceFails) {
  WorkerPass pass = participant();
  pass.marked(kA, {kBtoA});
  pass.found({{kContext, kAtoB}});
  EXPECT_EQ(failure(pass.found({{kContext, kAtoB}})), Errc::backward_failed);
}

TEST_F(WorkerPassTest, DA16_OnlyThePeerOfAMessageMarksItAndSendsItsGradient) {
  WorkerPass marked = participant();
  EXPECT_EQ(failure(marked.marked(kC, {kBtoA})), Errc::malformed_payload);
  WorkerPass fed = walked();
  EXPECT_EQ(failure(fed.gradient(kC, kBtoA, 8)), Errc::invalid_gradient);
  EXPECT_EQ(fed.phase(), Phase::failed);
}

TEST_F(WorkerPassTest, DA4_AGradientDuringAWalkFails) {
  WorkerPass pass = participant();
  pass.marked(kA, {kBtoA});
  const PassActions actions = pass.gradient(kA, kBtoA, 8);
  EXPECT_EQ(failure(actions), Errc::invalid_gradient);
  EXPECT_EQ(all_of<StopGraph>(actions).size(), 1u);
}

TEST_F(WorkerPassTest, DA3_ANodeOfAnotherContextFails) {
  WorkerPass pass = participant();
  pass.marked(kA, {kBtoA});
  EXPECT_EQ(failure(pass.found({{{kHome.id, kHome.incarnation, 2}, kAtoB}})), Errc::foreign_context);
}

TEST_F(WorkerPassTest, DA17_TooManyBytesFail) {
  WorkerPass queued = walked({100});
  queued.gradient(kA, kBtoA, 0);
  WorkerPass staged = walked({100});
  EXPECT_EQ(failure(staged.gradient(kA, kBtoA, 101)), Errc::limit_exceeded);
  EXPECT_EQ(failure(queued.ran({true, 101})), Errc::limit_exceeded);
}

TEST_F(WorkerPassTest, DA17_QueuedAndStagedBytesCountTogether) {
  WorkerPass pass = participant(Mode::smart, {100});
  pass.marked(kA, {kBtoA, kBtoA2});
  pass.walked();
  EXPECT_EQ(failure(pass.gradient(kA, kBtoA, 60)), Errc::ok);
  EXPECT_EQ(failure(pass.ran({false, 60})), Errc::ok);
  EXPECT_EQ(failure(pass.gradient(kA, kBtoA2, 41)), Errc::limit_exceeded);
}

TEST_F(WorkerPassTest, DA7_TheStagedBookStaysUntilTheOutcomeIsKnown) {
  WorkerPass pass = walked();
  pass.gradient(kA, kBtoA, 8);
  pass.produced(kAtoB);
  pass.ran({true, 8});
  // The initiator is lost after this worker's Done: the worker asks the home for the outcome and drops no gradients.
  const PassActions lost = pass.peer_down(kA);
  EXPECT_EQ(sent_to<Fail>(kHome, lost).size(), 1u);
  EXPECT_TRUE(all_of<DropGradients>(lost).empty());
  EXPECT_FALSE(pass.over());
  EXPECT_EQ(all_of<MergeGradients>(pass.conclude(true)).size(), 1u);
  EXPECT_TRUE(pass.over());
}

TEST_F(WorkerPassTest, DA10_TheLossOfTheInitiatorAfterAFailureIsReportedToTheHome) {
  WorkerPass pass = walked();
  EXPECT_EQ(failure(pass.fail(error(Errc::timeout))), Errc::timeout);
  EXPECT_EQ(sent_to<Fail>(kHome, pass.peer_down(kA)).size(), 1u);
}

TEST_F(WorkerPassTest, DA10_OnlyTheLossOfAWatchedWorkerFails) {
  sent.to[kBtoA2] = kC;
  WorkerPass pass = walked();
  EXPECT_TRUE(pass.peer_down(kC).empty());
  pass.marked(kC, {kBtoA2});
  EXPECT_EQ(failure(pass.peer_down(kC)), Errc::peer_down);
}

TEST_F(WorkerPassTest, DA11_AFailedPassIsDroppedWhenItsSliceHasStopped) {
  WorkerPass pass = walked();
  pass.gradient(kA, kBtoA, 8);
  PassActions actions = pass.conclude(false);
  EXPECT_EQ(all_of<StopGraph>(actions).size(), 1u);
  EXPECT_TRUE(all_of<DropGradients>(actions).empty());
  EXPECT_TRUE(pass.produced(kAtoB).empty());
  actions = pass.ran({false, 0});
  EXPECT_EQ(all_of<DropGradients>(actions).size(), 1u);
  EXPECT_TRUE(pass.over());
}

TEST_F(WorkerPassTest, AnEngineThatStallsFailsInsteadOfHanging) {
  WorkerPass pass = walked();
  pass.gradient(kA, kBtoA, 8);
  pass.produced(kAtoB);
  EXPECT_EQ(failure(pass.ran({false, 0})), Errc::backward_failed);
}

TEST_F(WorkerPassTest, FastWaitsForAllRecordedSendsAndReportsWhatIsMissing) {
  WorkerPass pass = participant(Mode::fast);
  pass.begin();
  const auto run = all_of<RunGraph>(pass.gradient(kA, kBtoA, 8));
  EXPECT_EQ(run.at(0).sources.size(), 2u);
  pass.produced(kAtoB);
  const Report waiting = sent_to<Report>(kA, pass.ran({false, 0})).at(0);
  EXPECT_EQ(waiting.done, std::vector{kBtoA});
  EXPECT_EQ(waiting.spawned, std::vector{kAtoB});
  EXPECT_EQ(waiting.missing, std::vector{kBtoA2});
  EXPECT_FALSE(waiting.drained);
  pass.gradient(kA, kBtoA2, 8);
  const Report drained = sent_to<Report>(kA, pass.ran({true, 0})).at(0);
  EXPECT_TRUE(drained.drained);
  EXPECT_TRUE(drained.missing.empty());
}

}  // namespace
}  // namespace caftan::autograd::worker_pass_test
