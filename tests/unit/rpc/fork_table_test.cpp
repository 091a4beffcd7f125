#include "caftan/rpc/internal/fork_table.hpp"

#include <gtest/gtest.h>

#include <variant>

namespace caftan::rpc::fork_table_test {
namespace {

ForkId fork(std::uint64_t number) { return {WorkerId{1}, Incarnation{11}, number}; }
PeerSession session(std::uint64_t connection) { return {{WorkerId{1}, Incarnation{11}}, connection}; }

template <class Action>
bool has(const OwnerActions& actions) {
  for (const OwnerAction& action : actions) {
    if (std::holds_alternative<Action>(action)) return true;
  }
  return false;
}

bool ends(const OwnerActions& actions) { return has<EndValue>(actions); }

// Returns the table of a value that exists and that one handle at its owner holds.
ForkTable make_held() {
  ForkTable table;
  table.created_here();
  EXPECT_TRUE(table.creation_finished().empty());
  return table;
}

TEST(ForkTable, RR8_EndsOnceWhenTheLastHoldIsReleased) {
  ForkTable table = make_held();
  EXPECT_TRUE(ends(table.released(Use::hold)));
  EXPECT_TRUE(table.ended());
  EXPECT_TRUE(table.creation_finished().empty());
  EXPECT_TRUE(table.down(fork(1), session(1)).empty());
}

TEST(ForkTable, RR8_AnUnfinishedCreationKeepsTheValueWhenItsCreatorIsGone) {
  ForkTable table;
  EXPECT_TRUE(has<MonitorFork>(table.created_by(fork(1), session(1))));
  EXPECT_FALSE(ends(table.down(fork(1), session(1))));
  EXPECT_TRUE(ends(table.creation_finished()));
}

TEST(ForkTable, RR8_EachKindOfUseKeepsTheValue) {
  for (const Use use : {Use::hold, Use::method, Use::fetch}) {
    ForkTable table;
    table.created_by(fork(1), session(1));
    table.creation_finished();
    ASSERT_TRUE(table.acquired(use));
    ASSERT_TRUE(table.acquired(use));
    EXPECT_EQ(table.in_use(use), 2u);
    EXPECT_FALSE(ends(table.down(fork(1), session(1))));
    EXPECT_FALSE(ends(table.released(use)));
    EXPECT_TRUE(ends(table.released(use)));
  }
}

TEST(ForkTable, RR8_WhatIsAskedAfterTheEndIsAnsweredDeleted) {
  ForkTable table = make_held();
  table.released(Use::hold);
  const OwnerActions actions = table.requested(fork(2), fork(1), session(1));
  ASSERT_EQ(actions.size(), 1u);
  const auto& answer = std::get<AnswerFork>(actions[0]);
  EXPECT_EQ(answer.code, Errc::rref_deleted);
  EXPECT_EQ(answer.fork, fork(2));
  EXPECT_EQ(table.acquired(Use::method).error().code(), Errc::rref_deleted);
  EXPECT_EQ(table.passed_back(fork(3), fork(0), session(1)).error().code(), Errc::rref_deleted);
  EXPECT_TRUE(table.forks().empty());
}

TEST(ForkTable, RR5_ARequestIsMonitoredBeforeItIsAnswered) {
  ForkTable table = make_held();
  const OwnerActions actions = table.requested(fork(2), fork(1), session(4));
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<MonitorFork>(actions[0]).session, session(4));
  EXPECT_EQ(std::get<AnswerFork>(actions[1]).code, Errc::ok);
  const auto forks = table.forks();
  ASSERT_EQ(forks.size(), 1u);
  EXPECT_EQ(forks[0].parent, fork(1));
}

TEST(ForkTable, RR5_ARepeatedRequestCountsOnceAndIsAnsweredAgain) {
  ForkTable table = make_held();
  table.requested(fork(2), fork(1), session(1));
  const OwnerActions again = table.requested(fork(2), fork(1), session(1));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(std::get<AnswerFork>(again[0]).code, Errc::ok);
  table.released(Use::hold);
  EXPECT_TRUE(ends(table.down(fork(2), session(1))));
}

TEST(ForkTable, RR7_ADownOfAnotherSessionOrForkChangesNothing) {
  ForkTable table = make_held();
  table.handed_over(fork(1), session(2));
  table.released(Use::hold);
  EXPECT_TRUE(table.down(fork(1), session(1)).empty());
  EXPECT_TRUE(table.down(fork(9), session(2)).empty());
  EXPECT_TRUE(table.has(fork(1), session(2)));
  EXPECT_FALSE(table.has(fork(1), session(1)));
  EXPECT_TRUE(ends(table.down(fork(1), session(2))));
}

TEST(ForkTable, RR4_AHandOverThatTheLaneRefusedLeavesNothing) {
  ForkTable table = make_held();
  EXPECT_TRUE(has<MonitorFork>(table.handed_over(fork(1), session(1))));
  EXPECT_TRUE(table.down(fork(1), session(1)).empty());
  EXPECT_TRUE(table.forks().empty());
  EXPECT_FALSE(table.ended());
}

TEST(ForkTable, RR4_AReferencePassedBackHoldsBeforeItsForkGoesDown) {
  ForkTable table = make_held();
  table.handed_over(fork(1), session(1));
  table.released(Use::hold);
  ASSERT_TRUE(table.passed_back(fork(7), fork(0), session(1)));
  EXPECT_FALSE(ends(table.down(fork(1), session(1))));
  EXPECT_TRUE(ends(table.released(Use::hold)));
}

TEST(ForkTable, RR4_ACallToTheOwnWorkerTurnsItsForkIntoAHold) {
  ForkTable table = make_held();
  table.handed_over(fork(1), session(1));
  table.released(Use::hold);
  const Result<OwnerActions> actions = table.passed_back(fork(1), fork(0), session(1));
  ASSERT_TRUE(actions);
  EXPECT_TRUE(has<DemonitorFork>(*actions));
  EXPECT_TRUE(table.forks().empty());
  EXPECT_TRUE(ends(table.released(Use::hold)));
}

// ---- values that only holders of references may use

constexpr WorkerLife kOwner{WorkerId{0}, Incarnation{7}};
PeerSession of_other() { return {{WorkerId{2}, Incarnation{22}}, 5}; }
ForkTable make_guarded() {
  ForkTable table = make_held();
  table.guard(kOwner);
  return table;
}
Errc answer(const OwnerActions& actions) { return std::get<AnswerFork>(actions.back()).code; }

TEST(GuardedForkTable, PM5_OnlyALifeWithAForkMayUseTheValue) {
  ForkTable table = make_guarded();
  EXPECT_EQ(table.may_use(session(1).peer).error().code(), Errc::not_permitted);
  EXPECT_TRUE(table.may_use(kOwner));
  table.handed_over(fork(1), session(1));
  table.handed_over(fork(2), session(2));
  EXPECT_TRUE(table.may_use(session(1).peer));
  EXPECT_FALSE(table.may_use(of_other().peer));
  table.down(fork(1), session(1));
  EXPECT_TRUE(table.may_use(session(1).peer)) << "another fork of that life is left";
  table.down(fork(2), session(2));
  EXPECT_FALSE(table.may_use(session(1).peer));
}

TEST(GuardedForkTable, PM5_AChildIsCountedWhileItsParentIs) {
  ForkTable table = make_guarded();
  table.handed_over(fork(1), session(1));
  EXPECT_EQ(answer(table.requested(fork(5), fork(4), of_other())), Errc::not_permitted) << "a guessed parent";
  EXPECT_EQ(answer(table.requested(fork(5), ForkId{}, of_other())), Errc::not_permitted) << "none";
  EXPECT_FALSE(table.may_use(of_other().peer));
  EXPECT_EQ(answer(table.requested(fork(5), fork(1), of_other())), Errc::ok);
  EXPECT_TRUE(table.may_use(of_other().peer));
  table.down(fork(1), session(1));
  EXPECT_EQ(answer(table.requested(fork(5), fork(1), of_other())), Errc::ok) << "a repetition is answered again";
  EXPECT_EQ(answer(table.requested(fork(6), fork(1), of_other())), Errc::not_permitted);
}

TEST(GuardedForkTable, PM5_AReferenceComesBackFromAWorkerThatHoldsIt) {
  ForkTable table = make_guarded();
  table.handed_over(fork(1), session(1));
  EXPECT_EQ(table.passed_back(fork(8), fork(9), session(1)).error().code(), Errc::not_permitted);
  EXPECT_EQ(table.passed_back(fork(8), fork(1), of_other()).error().code(), Errc::not_permitted)
      << "the fork of another worker";
  EXPECT_TRUE(table.passed_back(fork(8), fork(1), session(1)));
  EXPECT_TRUE(table.passed_back(fork(8), ForkId{}, PeerSession{kOwner, 3})) << "from this worker itself";
}

TEST(ForkTable, PM1_AValueThatIsNotGuardedIsForAll) {
  const ForkTable table = make_held();
  EXPECT_TRUE(table.may_use(session(1).peer));
}

}  // namespace
}  // namespace caftan::rpc::fork_table_test
