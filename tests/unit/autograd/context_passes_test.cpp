// ContextPasses event by event: one context at one worker, as home, initiator and participant.
#include "caftan/autograd/internal/context_passes.hpp"

#include <gtest/gtest.h>

#include "pass_events.hpp"

namespace caftan::autograd::context_passes_test {
namespace {

constexpr AutogradMessageId kHomeToA = message_of(kHome, 1);
constexpr AutogradMessageId kAtoHome = message_of(kA, 1);

DecidedSet decided(std::initializer_list<bool> outcomes) {
  DecidedSet set;
  for (const bool ok : outcomes) set.decide_next(ok);
  return set;
}

// The home alone: a pass whose roots reach no other worker.
TEST(ContextPasses, APassOfOneWorkerNeedsNoMessage) {
  Sent sent;
  ContextPasses home(kContext, kHome, sent);
  PassActions actions = *home.open({});
  EXPECT_EQ(all_of<BeginPass>(actions).size(), 1u);
  EXPECT_TRUE(all_of<WalkGraph>(actions).at(0).from_roots);
  actions = home.walked({1});
  EXPECT_TRUE(all_of<RunGraph>(actions).at(0).from_roots);
  actions = home.ran({1}, {true, 0});
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<MergeGradients>(actions[0]));  // before the future resolves
  EXPECT_TRUE(std::get<PassEnded>(actions[1]).outcome);
  EXPECT_TRUE(home.decided().is_ok({1}));
}

TEST(ContextPasses, OneHopTakesSixMessages) {
  Sent of_home, of_a;
  of_home.to[kHomeToA] = kA;
  of_a.to[kAtoHome] = kHome;
  ContextPasses home(kContext, kHome, of_home), a(kContext, kA, of_a);
  int messages = 0;
  const auto pass_on = [&](WorkerLife from, ContextPasses& to, const PassActions& actions) {
    PassActions answers;
    for (const Send& send : all_of<Send>(actions)) {
      ++messages;
      for (PassAction& action : to.receive(from, send.message)) answers.push_back(std::move(action));
    }
    return answers;
  };
  (void)*home.open({});
  PassActions marks = home.found({1}, {{kContext, kAtoHome}});
  (void)home.walked({1});
  EXPECT_EQ(all_of<WalkGraph>(pass_on(kHome, a, marks)).size(), 1u);
  PassActions back = a.found({1}, {{kContext, kHomeToA}});
  for (PassAction& action : a.walked({1})) back.push_back(std::move(action));
  EXPECT_EQ(all_of<WalkGraph>(pass_on(kA, home, back)).size(), 1u);
  EXPECT_TRUE(all_of<RunGraph>(home.walked({1})).at(0).from_roots);  // closed
  EXPECT_EQ(all_of<RunGraph>(pass_on(kHome, a, home.produced({1}, kAtoHome))).size(), 1u);
  (void)home.ran({1}, {false, 0});
  EXPECT_EQ(all_of<RunGraph>(pass_on(kA, home, a.produced({1}, kHomeToA))).size(), 1u);
  (void)home.ran({1}, {true, 0});
  const PassActions ended = pass_on(kA, home, a.ran({1}, {true, 0}));
  EXPECT_TRUE(all_of<PassEnded>(ended).at(0).outcome);
  EXPECT_EQ(all_of<MergeGradients>(pass_on(kHome, a, ended)).size(), 1u);
  EXPECT_EQ(messages, 7);  // between workers there are six frames: A's mark and report ride in one
}

TEST(ContextPasses, DA1_ASecondPassOfOneWorkerIsRefused) {
  Sent sent;
  ContextPasses home(kContext, kHome, sent);
  ASSERT_TRUE(home.open({}));
  EXPECT_EQ(home.open({}).error().code(), Errc::pass_busy);
}

TEST(ContextPasses, DA9_ALateGradientOfAnOldPassChangesNothing) {
  Sent sent;
  sent.to[kAtoHome] = kHome;
  ContextPasses a(kContext, kA, sent);
  (void)a.receive(kHome, Mark{header(2, kHome), {kAtoHome}});
  EXPECT_TRUE(a.receive(kHome, Grad{header(1, kHome), kAtoHome}).empty());
  EXPECT_EQ(a.pass()->phase(), WorkerPass::Phase::marking);
}

TEST(ContextPasses, DA4_AGradientWhereNothingWasMarkedBeginsNoPass) {
  Sent sent;
  sent.to[kAtoHome] = kHome;
  ContextPasses a(kContext, kA, sent);
  const PassActions actions = a.receive(kB, Grad{header(1, kHome), kAtoHome});
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(sent_to<Fail>(kB, actions).at(0).error.code(), Errc::invalid_gradient);
  EXPECT_FALSE(a.pass());
}

TEST(ContextPasses, DA8_AnyFrameTellsThatAPassIsDecided) {
  Sent sent;
  sent.to[kAtoHome] = kHome;
  ContextPasses a(kContext, kA, sent);
  (void)a.receive(kHome, Mark{header(1, kHome), {kAtoHome}});
  (void)a.walked({1});
  (void)a.receive(kHome, Grad{header(1, kHome), kAtoHome});
  (void)a.ran({1}, {true, 0});
  EXPECT_EQ(all_of<MergeGradients>(a.learn(decided({true}))).size(), 1u);
  EXPECT_TRUE(a.learn(decided({true})).empty());
}

TEST(ContextPasses, DA11_TheNextPassWaitsUntilTheFailedOneHasStopped) {
  Sent sent;
  sent.to[kAtoHome] = kHome;
  ContextPasses a(kContext, kA, sent);
  (void)a.receive(kHome, Mark{header(1, kHome), {kAtoHome}});
  PassHeader next = header(2, kHome);
  next.decided = decided({false});
  const PassActions early = a.receive(kHome, Mark{next, {kAtoHome}});
  EXPECT_EQ(all_of<StopGraph>(early).size(), 1u);
  EXPECT_TRUE(all_of<WalkGraph>(early).empty());
  const PassActions stopped = a.walked({1});
  ASSERT_GE(stopped.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<DropGradients>(stopped[0]));
  EXPECT_TRUE(std::holds_alternative<BeginPass>(stopped[1]));
  EXPECT_EQ(all_of<WalkGraph>(stopped).at(0).pass, PassNumber{2});
}

TEST(ContextPasses, T2_DA24_AMarkThatWasNotSentFailsThePassAndLosesNoWorker) {
  Sent of_home, of_a;
  of_a.to[kAtoHome] = kHome;
  ContextPasses home(kContext, kHome, of_home), a(kContext, kA, of_a);
  (void)*home.open({});
  (void)home.found({1}, {{kContext, kAtoHome}});
  const PassActions ended = home.not_sent({1}, error(Errc::limit_exceeded));
  EXPECT_TRUE(home.not_sent({2}, error(Errc::limit_exceeded)).empty());
  PassActions stopped = home.walked({1});
  stopped.insert(stopped.end(), ended.begin(), ended.end());
  ASSERT_EQ(all_of<PassEnded>(stopped).size(), 1u);
  EXPECT_EQ(all_of<PassEnded>(stopped)[0].outcome.error().code(), Errc::limit_exceeded);
  EXPECT_TRUE(home.open({})) << "the next pass is granted";
  // A participant whose message cannot be sent reports that to the initiator.
  (void)a.receive(kHome, Mark{header(1, kHome), {kAtoHome}});
  const auto fails = sent_to<Fail>(kHome, a.not_sent({1}, error(Errc::limit_exceeded)));
  ASSERT_EQ(fails.size(), 1u);
  EXPECT_EQ(fails[0].error.code(), Errc::limit_exceeded);
}

TEST(ContextPasses, AGraphFreedByAFailedPassIsNamed) {
  for (const bool keep : {false, true}) {
    Sent sent;
    sent.to[kAtoHome] = kHome;
    ContextPasses a(kContext, kA, sent);
    (void)a.receive(kHome, Mark{header(1, kHome, Mode::smart, keep), {kAtoHome}});
    (void)a.walked({1});
    (void)a.receive(kHome, Grad{header(1, kHome, Mode::smart, keep), kAtoHome});
    (void)a.graph_failed({1}, error(Errc::backward_failed));
    (void)a.learn(decided({false}));
    PassHeader next = header(2, kHome);
    next.decided = decided({false});
    const auto fails = sent_to<Fail>(kHome, a.receive(kHome, Mark{next, {kAtoHome}}));
    ASSERT_EQ(fails.size(), keep ? 0u : 1u);
    if (!keep) {
      EXPECT_EQ(fails[0].error.code(), Errc::graph_freed);
    }
  }
}

TEST(ContextPasses, DA10_WhoSpeaksOfAPassThatIsOverIsAnswered) {
  Sent sent;
  ContextPasses home(kContext, kHome, sent);
  (void)*home.open({});
  (void)home.abort(error(Errc::timeout));
  const PassActions answer = home.receive(kB, Report{pass(1), {message_of(kB, 1)}, {}, {}, false});
  EXPECT_FALSE(home.decided().is_ok({1}));
  EXPECT_FALSE(sent_to<End>(kB, answer).at(0).outcome);
}

TEST(ContextPasses, DA19_TheHandlesOwnPassHoldsTheRelease) {
  Sent sent;
  ContextPasses home(kContext, kHome, sent);
  (void)home.receive(kA, Join{kContext});
  (void)*home.open({});
  EXPECT_TRUE(home.release().empty());
  EXPECT_EQ(home.open({}).error().code(), Errc::context_released);
  (void)home.walked({1});
  const PassActions last = home.ran({1}, {true, 0});
  EXPECT_TRUE(all_of<PassEnded>(last).at(0).outcome);
  EXPECT_EQ(all_of<ContextReleased>(last).at(0).tell, std::vector{kA});
  EXPECT_EQ(all_of<ContextEmpty>(last).size(), 1u);
}

TEST(ContextPasses, DA10_TheLossOfTheHomeEndsAllAndTellsTheNeighbours) {
  Sent sent;
  sent.to[kAtoHome] = kB;
  ContextPasses a(kContext, kA, sent);
  (void)a.receive(kB, Mark{header(1, kC), {kAtoHome}});
  PassActions lost = a.peer_down(kHome);
  EXPECT_EQ(all_of<ContextReleased>(lost).size(), 1u);
  EXPECT_EQ(sent_to<Fail>(kB, lost).size(), 1u);
  EXPECT_EQ(sent_to<Fail>(kC, lost).size(), 1u);
  EXPECT_TRUE(all_of<ContextEmpty>(lost).empty());  // a walk is under way
  lost = a.walked({1});
  EXPECT_EQ(all_of<DropGradients>(lost).size(), 1u);
  EXPECT_EQ(all_of<ContextEmpty>(lost).size(), 1u);
}

TEST(ContextPasses, AnInitiatorElsewhereAsksTheHome) {
  Sent sent;
  ContextPasses a(kContext, kA, sent);
  EXPECT_EQ(sent_to<Join>(kHome, a.join()).size(), 1u);
  EXPECT_EQ(sent_to<PassOpen>(kHome, *a.open({})).size(), 1u);
  EXPECT_TRUE(a.receive(kB, Granted{pass(1), {}}).empty());  // not the home
  EXPECT_EQ(all_of<WalkGraph>(a.receive(kHome, Granted{pass(1), {}})).size(), 1u);
  const PassActions lost = a.peer_down(kHome);
  EXPECT_EQ(all_of<PassEnded>(lost).at(0).outcome.error().code(), Errc::peer_down);
}

}  // namespace
}  // namespace caftan::autograd::context_passes_test
