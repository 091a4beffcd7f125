#include "caftan/rpc/internal/creation_ledger.hpp"

#include <gtest/gtest.h>

namespace caftan::rpc::creation_ledger_test {
namespace {

constexpr Incarnation kCreator{7};
const PeerSession kCreatorSession{{WorkerId{1}, kCreator}, 3};
const PeerSession kAskerSession{{WorkerId{2}, Incarnation{8}}, 1};

RRefId rref(std::uint64_t number) { return {WorkerId{1}, kCreator, number}; }
ForkRequest ask(std::uint64_t value, CreationNumber creation, std::uint64_t fork = 1) {
  return {rref(value), creation, ForkId{WorkerId{1}, kCreator, 100 + fork}, ForkId{}, kAskerSession};
}

TEST(CreationLedger, RR9_ARequestThatOvertakesItsCreationWaitsForIt) {
  CreationLedger ledger;
  EXPECT_TRUE(ledger.park(ask(1, {3, 1}, 1)));
  EXPECT_TRUE(ledger.park(ask(1, {3, 1}, 2)));
  EXPECT_TRUE(ledger.park(ask(2, {3, 2}, 3)));
  const auto waiting = ledger.created(rref(1), {3, 1});
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0].fork.number, 101u);
  EXPECT_EQ(ledger.parked_count(), 1u);
}

TEST(CreationLedger, RR9_AnIdNotAboveTheHighestSeenIsDeleted) {
  CreationLedger ledger;
  ledger.created(rref(2), {3, 2});
  EXPECT_FALSE(ledger.park(ask(1, {3, 1})));
  EXPECT_FALSE(ledger.park(ask(2, {3, 2})));
  EXPECT_TRUE(ledger.park(ask(3, {3, 3})));
}

TEST(CreationLedger, RR9_ALaterConnectionOfTheSameCreatorIsLaterWhateverItsCount) {
  CreationLedger ledger;
  ledger.created(rref(9), {3, 9});
  EXPECT_TRUE(ledger.park(ask(10, {4, 1})));
  ledger.created(rref(10), {4, 1});
  EXPECT_FALSE(ledger.park(ask(11, {3, 10})));
  ledger.created(rref(11), {3, 11});
  EXPECT_FALSE(ledger.park(ask(10, {4, 1}))) << "the highest never falls";
}

TEST(CreationLedger, RR9_TheEndOfTheCreatorsSessionRefusesWhatWaitsForIt) {
  CreationLedger ledger;
  ledger.park(ask(1, {3, 1}, 1));
  ledger.park(ask(2, {4, 1}, 2));
  const auto refused = ledger.session_ended(kCreatorSession);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].rref, rref(1));
  EXPECT_EQ(ledger.parked_count(), 1u);
  EXPECT_FALSE(ledger.park(ask(5, {3, 5})));
}

TEST(CreationLedger, RR9_TheEndOfTheAskersSessionForgetsItsRequests) {
  CreationLedger ledger;
  ledger.park(ask(1, {3, 1}));
  EXPECT_TRUE(ledger.session_ended(kAskerSession).empty());
  EXPECT_EQ(ledger.parked_count(), 0u);
  EXPECT_TRUE(ledger.created(rref(1), {3, 1}).empty());
}

TEST(CreationLedger, RR9_TheAskersDeadlineTakesItsRequestOut) {
  CreationLedger ledger;
  const ForkRequest request = ask(1, {3, 1});
  ledger.park(request);
  EXPECT_FALSE(ledger.expired(request.fork, kCreatorSession));
  const auto expired = ledger.expired(request.fork, request.session);
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->rref, rref(1));
  EXPECT_FALSE(ledger.expired(request.fork, request.session));
  EXPECT_EQ(ledger.parked_count(), 0u);
}

TEST(CreationLedger, RR1_TheNumbersOfAnotherLifeAreItsOwn) {
  CreationLedger ledger;
  ledger.created(rref(9), {3, 9});
  ForkRequest request = ask(1, {3, 1});
  request.rref.incarnation = Incarnation{70};
  EXPECT_TRUE(ledger.park(request));
}

TEST(CreationLedger, RR9_AValueTheOwnerMadeItselfIsNeverParked) {
  CreationLedger ledger;
  EXPECT_FALSE(ledger.park(ask(1, {})));
}

}  // namespace
}  // namespace caftan::rpc::creation_ledger_test
