// Which of several reasons a failed run is given for, and which worker it names.
#include "caftan/run/internal/failure_reasons.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::run::failure_reasons_test {
namespace {

constexpr std::size_t kAgent = 0;
constexpr std::size_t kObserver = 1;

FailureReasons make_reasons() { return FailureReasons({"agent", "observer"}); }
const Error kOwn(Errc::remote_exception, "division by zero");
const Error kEcho(Errc::peer_down, "observer", "no session");

TEST(FailureReasons, WithoutOneTheRunHasSucceeded) {
  const FailureReasons reasons = make_reasons();
  EXPECT_EQ(reasons.reason().code(), Errc::ok);
  EXPECT_EQ(reasons.verdict().outcome, Verdict::Outcome::success);
  EXPECT_FALSE(reasons.has_error());
}

TEST(FailureReasons, TheFirstErrorCountsUnlessItIsAConsequence) {
  FailureReasons reasons = make_reasons();
  reasons.add(kAgent, kEcho, false);
  EXPECT_TRUE(reasons.has_echo());
  reasons.add(kObserver, kOwn, false);
  reasons.add(kAgent, Error(Errc::bad_arguments, "later"), false);
  EXPECT_FALSE(reasons.has_echo());
  EXPECT_EQ(reasons.verdict().blame, kObserver);
  EXPECT_EQ(reasons.verdict().error, "observer: remote_exception: division by zero");
  EXPECT_EQ(reasons.verdict().exit_code, 1);
}

TEST(FailureReasons, ADeathCountsBeforeItsConsequences) {
  FailureReasons reasons = make_reasons();
  reasons.add(kAgent, kEcho, false);
  reasons.add_death(kObserver, "was killed", false);
  reasons.add_death(kAgent, "exited", true);
  EXPECT_EQ(reasons.dead(), kObserver);
  EXPECT_EQ(reasons.verdict().death, "was killed");
  EXPECT_EQ(reasons.verdict().error, "observer was killed; agent: peer_down: observer: no session");
  EXPECT_EQ(reasons.reason().text(), "observer was killed");
  reasons.add(kAgent, kOwn, false);
  EXPECT_EQ(reasons.verdict().blame, kObserver);
}

TEST(FailureReasons, RN23_ADeathCountsBeforeAnErrorThatIsReportedLater) {
  FailureReasons reasons = make_reasons();
  reasons.add_death(kObserver, "was killed", false);
  reasons.add(kAgent, kOwn, false);
  EXPECT_EQ(reasons.verdict().blame, kObserver);
  EXPECT_EQ(reasons.verdict().error, "observer was killed; agent: remote_exception: division by zero");
  EXPECT_EQ(reasons.verdict().death, "was killed");
  EXPECT_EQ(reasons.reason().code(), Errc::peer_down);
}

TEST(FailureReasons, RN23_AnErrorThatCameFirstCountsBeforeADeathUnlessTheProcessEndedOnItsOwn) {
  for (const bool on_its_own : {false, true}) {
    FailureReasons reasons = make_reasons();
    reasons.add(kAgent, kOwn, false);
    reasons.add_death(kObserver, "was killed", on_its_own);
    EXPECT_EQ(reasons.verdict().blame, on_its_own ? kObserver : kAgent);
  }
}

TEST(FailureReasons, RN23_AnErrorSaysMoreThanTheEndOfTheSameWorker) {
  FailureReasons reasons = make_reasons();
  reasons.add(kAgent, kOwn, false);
  reasons.add_death(kAgent, "exited with code 1", true);
  EXPECT_EQ(reasons.verdict().error, "agent: remote_exception: division by zero");
}

TEST(FailureReasons, WhatConcernsTheWholeRunNamesNoWorker) {
  FailureReasons reasons = make_reasons();
  reasons.add(kAgent, kOwn, false);
  reasons.add_general(Error(Errc::timeout, "the run took longer than 1s"));
  EXPECT_EQ(reasons.verdict().error, "the run took longer than 1s");
  EXPECT_EQ(reasons.verdict().blame, std::nullopt);
  EXPECT_EQ(reasons.reason().code(), Errc::timeout);
}

TEST(FailureReasons, ABadFileIsOneOnlyAtTheStart) {
  for (const bool at_start : {true, false}) {
    FailureReasons reasons = make_reasons();
    reasons.add(kAgent, Error(Errc::invalid_config, "another digest"), at_start);
    EXPECT_EQ(reasons.verdict().exit_code, at_start ? 2 : 1);
  }
}

TEST(FailureReasons, ToOtherHostsALeaveIsALoss) {
  FailureReasons reasons = make_reasons();
  reasons.add(kAgent, Error(Errc::shut_down, "observer", "has left"), false);
  EXPECT_EQ(reasons.reason().code(), Errc::peer_down) << "shut_down would be a good-bye in good order";
}

}  // namespace
}  // namespace caftan::run::failure_reasons_test
