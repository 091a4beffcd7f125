// PassHome event by event: what the home of a context decides and sends.
#include "caftan/autograd/internal/pass_home.hpp"

#include <gtest/gtest.h>

#include "pass_events.hpp"

namespace caftan::autograd::pass_home_test {
namespace {

TEST(PassHome, DA1_GrantsOnePassAtATimeWithGrowingNumbers) {
  PassHome home(kContext);
  EXPECT_EQ(sent_to<Granted>(kA, home.open(kA)).at(0).pass, pass(1));
  EXPECT_EQ(sent_to<Refused>(kB, home.open(kB)).at(0).error.code(), Errc::pass_busy);
  home.decide(kA, {pass(1), {}});
  const Granted second = sent_to<Granted>(kB, home.open(kB)).at(0);
  EXPECT_EQ(second.pass, pass(2));
  EXPECT_TRUE(second.decided.is_ok({1}));
}

TEST(PassHome, DA10_TheFirstDecisionStands) {
  PassHome home(kContext);
  home.open(kA);
  home.joined(kB);
  const PassActions reported = home.fail(kB, {pass(1), error(Errc::peer_down)});
  EXPECT_EQ(sent_to<Decided>(kA, reported).at(0).outcome.error().code(), Errc::peer_down);
  EXPECT_EQ(sent_to<End>(kB, reported).size(), 1u);
  const Decided late = sent_to<Decided>(kA, home.decide(kA, {pass(1), {}})).at(0);
  ASSERT_FALSE(late.outcome);
  EXPECT_EQ(late.outcome.error().code(), Errc::peer_down);
  EXPECT_FALSE(home.decided().is_ok({1}));
}

TEST(PassHome, OnlyTheInitiatorDecidesItsPass) {
  PassHome home(kContext);
  home.open(kA);
  EXPECT_TRUE(home.decide(kB, {pass(1), {}}).empty());
  EXPECT_TRUE(home.decide(kA, {pass(2), {}}).empty());
  EXPECT_EQ(home.open_pass(), PassNumber{1});
}

TEST(PassHome, DA10_TheLossOfTheInitiatorFailsItsPassAndTellsWhoJoined) {
  PassHome home(kContext);
  home.open(kA);
  home.joined(kB);
  const PassActions reported = home.peer_down(kA);
  EXPECT_EQ(sent_to<End>(kB, reported).at(0).outcome.error().code(), Errc::peer_down);
  EXPECT_TRUE(sent_to<End>(kA, reported).empty());
  EXPECT_FALSE(home.open_pass());
}

TEST(PassHome, DA10_TheLossOfAnInitiatorAfterTheCommitTellsThatItWasOk) {
  PassHome home(kContext);
  home.open(kA);
  home.joined(kB);
  home.decide(kA, {pass(1), {}});
  EXPECT_TRUE(sent_to<End>(kB, home.peer_down(kA)).at(0).outcome);
}

TEST(PassHome, DA10_WhoJoinsAfterADecisionHearsOfIt) {
  PassHome home(kContext);
  EXPECT_TRUE(home.joined(kB).empty());
  home.open(kA);
  home.decide(kA, {pass(1), error(Errc::timeout)});
  const End end = sent_to<End>(kC, home.joined(kC)).at(0);
  EXPECT_EQ(end.outcome.error().code(), Errc::timeout);
  EXPECT_TRUE(end.decided.contains({1}));
}

TEST(PassHome, AContextOfManyFailuresOpensNoFurtherPass) {
  PassHome home(kContext);
  for (std::uint64_t n = 1; n <= DecidedSet::kMostFailed; ++n) {
    ASSERT_EQ(sent_to<Granted>(kA, home.open(kA)).size(), 1u);
    home.decide(kA, {pass(n), error(Errc::timeout)});
  }
  EXPECT_EQ(sent_to<Refused>(kA, home.open(kA)).at(0).error.code(), Errc::limit_exceeded);
}

TEST(PassHome, DA19_TheReleaseWaitsForThePassOfTheHome) {
  PassHome home(kContext);
  home.own_pass_begins();
  EXPECT_FALSE(home.own_pass_ends());
  home.own_pass_begins();
  EXPECT_FALSE(home.release());
  EXPECT_TRUE(home.own_pass_ends());
  PassHome idle(kContext);
  EXPECT_TRUE(idle.release());
  EXPECT_FALSE(idle.release());
}

}  // namespace
}  // namespace caftan::autograd::pass_home_test
