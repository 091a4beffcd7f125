#include "caftan/optim/internal/step_ledger.hpp"

#include <gtest/gtest.h>

namespace caftan::optim::step_ledger_test {
namespace {

constexpr StepNumber kOne{1};
constexpr StepNumber kTwo{2};
constexpr StepNumber kThree{3};

TEST(StepLedger, OP7_AStepRunsOnceAndIsAnsweredAgainAsThen) {
  StepLedger ledger;
  EXPECT_EQ(*ledger.admit_step(kOne), Admission::run);
  ledger.applied(kOne, StepDone{kOne, 4});
  EXPECT_EQ(*ledger.admit_step(kOne), Admission::repeat);
  EXPECT_EQ(ledger.done()->stepped, 4U);
  EXPECT_EQ(*ledger.admit_step(kThree), Admission::run) << "numbers may be left out";
  ledger.applied(kThree, Error(Errc::remote_exception, "half"));
  EXPECT_EQ(*ledger.admit_step(kThree), Admission::repeat);
  EXPECT_EQ(ledger.done().error().text(), "half") << "a failure is an answer too";
  EXPECT_EQ(ledger.admit_step(kTwo).error().code(), Errc::bad_arguments);
  EXPECT_EQ(ledger.last(), kThree);
}

TEST(StepLedger, OP7_ACommitRunsOnceAndOnlyForWhatIsPrepared) {
  StepLedger ledger;
  EXPECT_EQ(ledger.admit_commit(kOne).error().code(), Errc::bad_arguments);
  EXPECT_EQ(*ledger.admit_prepare(kOne), Admission::run);
  ledger.prepared(kOne, Prepared{kOne, 2, 9.0});
  EXPECT_EQ(*ledger.admit_prepare(kOne), Admission::repeat);
  EXPECT_EQ(ledger.prepared().squared_norm, 9.0);
  EXPECT_EQ(ledger.admit_commit(kTwo).error().code(), Errc::bad_arguments);
  EXPECT_EQ(*ledger.admit_commit(kOne), Admission::run);
  ledger.applied(kOne, StepDone{kOne, 2});
  EXPECT_EQ(*ledger.admit_commit(kOne), Admission::repeat);
  EXPECT_EQ(ledger.admit_prepare(kOne).error().code(), Errc::bad_arguments);
  EXPECT_FALSE(ledger.abort(kOne)) << "it was applied: there is nothing to give up";
}

TEST(StepLedger, OP8_WhatWasGivenUpCannotBeCommitted) {
  StepLedger ledger;
  EXPECT_EQ(*ledger.admit_prepare(kOne), Admission::run);
  ledger.prepared(kOne, Prepared{kOne, 2, 9.0});
  EXPECT_FALSE(ledger.abort(kTwo)) << "another step's";
  EXPECT_TRUE(ledger.abort(kOne));
  EXPECT_FALSE(ledger.abort(kOne));
  EXPECT_EQ(ledger.admit_commit(kOne).error().code(), Errc::bad_arguments);

  ledger.prepared(kOne, Error(Errc::unsupported, "sparse"));
  EXPECT_EQ(ledger.admit_commit(kOne).error().code(), Errc::bad_arguments) << "it was refused";

  EXPECT_EQ(*ledger.admit_prepare(kTwo), Admission::run);
  ledger.prepared(kTwo, Prepared{kTwo, 2, 9.0});
  EXPECT_EQ(*ledger.admit_prepare(kThree), Admission::run) << "a lost abort is made good by the next step";
  ledger.prepared(kThree, Prepared{kThree, 2, 9.0});
  EXPECT_EQ(ledger.admit_commit(kTwo).error().code(), Errc::bad_arguments);
}

SearchReply searched(StepNumber step, std::uint64_t evaluation, bool more) { return {step, evaluation, more, 2}; }

TEST(StepLedger, OP12_EvaluationsOfAStepFollowEachOtherAndRunOnce) {
  StepLedger ledger;
  EXPECT_EQ(ledger.admit_search(kOne, 2).error().code(), Errc::bad_arguments) << "its first one never came";
  EXPECT_EQ(*ledger.admit_search(kOne, 1), Admission::run);
  ledger.searched(searched(kOne, 1, true));
  EXPECT_TRUE(ledger.is_open(kOne));
  EXPECT_EQ(*ledger.admit_search(kOne, 1), Admission::repeat);
  EXPECT_TRUE(ledger.searched().wants_another);
  EXPECT_EQ(ledger.admit_search(kOne, 3).error().code(), Errc::bad_arguments);
  EXPECT_EQ(*ledger.admit_search(kOne, 2), Admission::run);
  EXPECT_EQ(ledger.last(), StepNumber{}) << "a step that is open was not run";
  ledger.searched(searched(kOne, 2, false));
  EXPECT_FALSE(ledger.is_open(kOne));
  EXPECT_EQ(ledger.last(), kOne);
  EXPECT_EQ(*ledger.admit_search(kOne, 2), Admission::repeat);
  EXPECT_EQ(ledger.admit_search(kOne, 3).error().code(), Errc::bad_arguments);
  EXPECT_EQ(ledger.done()->stepped, 2U);
}

TEST(StepLedger, OP12_AStepThatWasRolledBackDoesNotGoOn) {
  StepLedger ledger;
  ledger.searched(searched(kOne, 3, true));
  ledger.search_dropped();
  EXPECT_EQ(ledger.admit_search(kOne, 4).error().code(), Errc::bad_arguments);
  EXPECT_EQ(*ledger.admit_search(kOne, 1), Admission::run) << "it was not run, so it may begin anew";
  EXPECT_EQ(*ledger.admit_search(kTwo, 1), Admission::run);
  ledger.searched(searched(kTwo, 1, true));
  ledger.loaded(kThree);
  EXPECT_FALSE(ledger.is_open(kTwo));
  EXPECT_EQ(ledger.admit_search(kTwo, 2).error().code(), Errc::bad_arguments);
}

TEST(StepLedger, OP14_AStepThatFailedWasNotMade) {
  StepLedger ledger;
  ledger.applied(kOne, StepDone{kOne, 4});
  ledger.applied(kTwo, Error(Errc::unsupported, "sparse"));
  EXPECT_EQ(ledger.last(), kTwo);
  EXPECT_EQ(ledger.made(), kOne);
  ledger.searched(searched(kThree, 1, true));
  EXPECT_EQ(ledger.made(), kOne) << "it is open";
  ledger.searched(searched(kThree, 2, false));
  EXPECT_EQ(ledger.made(), kThree);
  ledger.loaded(kOne);
  EXPECT_EQ(ledger.made(), kOne);
}

TEST(StepLedger, ALoadedStateCountsOnFromItsStep) {
  StepLedger ledger;
  EXPECT_EQ(*ledger.admit_step(kThree), Admission::run);
  ledger.applied(kThree, StepDone{kThree, 1});
  ledger.loaded(kOne);
  EXPECT_EQ(ledger.admit_step(kOne).error().code(), Errc::bad_arguments) << "there is no answer to repeat";
  EXPECT_EQ(*ledger.admit_step(kTwo), Admission::run);
}

}  // namespace
}  // namespace caftan::optim::step_ledger_test
