// PassLedger event by event: what the initiator of a pass decides and sends.
#include "caftan/autograd/internal/pass_ledger.hpp"

#include <gtest/gtest.h>

#include "pass_events.hpp"

namespace caftan::autograd::pass_ledger_test {
namespace {

using Phase = PassLedger::Phase;
constexpr AutogradMessageId kRoots{};
constexpr AutogradMessageId kOfB = message_of(kB, 1);
constexpr AutogradMessageId kOfC = message_of(kC, 1);

PassLedger begun(Mode mode = Mode::smart) {
  PassLedger ledger(kContext, kA, mode);
  EXPECT_EQ(sent_to<PassOpen>(kHome, ledger.start()).size(), 1u);
  ledger.granted({1});
  return ledger;
}

Report report(std::vector<AutogradMessageId> done, std::vector<AutogradMessageId> spawned) {
  return {pass(1), std::move(done), std::move(spawned), {}, false};
}

Errc failure(const PassActions& actions) {
  const auto decides = sent_to<Decide>(kHome, actions);
  return decides.empty() || decides[0].outcome ? Errc::ok : decides[0].outcome.error().code();
}

TEST(PassLedger, DA12_ClosesInWhateverOrderReportsArrive) {
  PassLedger ledger = begun();
  ledger.report(kC, report({kOfC}, {}));
  ledger.report(kB, report({kOfB}, {kOfC}));
  EXPECT_EQ(ledger.phase(), Phase::counting);
  ledger.report(kA, report({kRoots}, {kOfB}));
  EXPECT_EQ(ledger.phase(), Phase::running);
  EXPECT_EQ(ledger.participants(), 3u);
}

TEST(PassLedger, DA10_WatchesWhoTakesPartThoughItNeverMetIt) {
  PassLedger ledger = begun();
  const auto watched = all_of<WatchWorker>(ledger.report(kA, report({kRoots}, {kOfB})));
  ASSERT_EQ(watched.size(), 1u);
  EXPECT_EQ(watched[0].worker, kB);
  EXPECT_EQ(failure(ledger.peer_down(kB)), Errc::peer_down);
}

TEST(PassLedger, DecidesOkWhenTheLastIsDone) {
  PassLedger ledger = begun();
  ledger.report(kA, report({kRoots}, {kOfB}));
  ledger.report(kB, report({kOfB}, {}));
  EXPECT_TRUE(ledger.done(kB).empty());
  EXPECT_TRUE(sent_to<Decide>(kHome, ledger.done(kA)).at(0).outcome);
  DecidedSet decided;
  decided.decide_next(true);
  const PassActions ended = ledger.decided({pass(1), {}, decided});
  EXPECT_TRUE(all_of<PassEnded>(ended).at(0).outcome);
  EXPECT_EQ(sent_to<End>(kB, ended).size(), 1u);
}

TEST(PassLedger, DA10_TheFirstFailureWinsAndItsSenderHearsTheEnd) {
  PassLedger ledger = begun();
  EXPECT_EQ(failure(ledger.failed(kC, error(Errc::invalid_gradient))), Errc::invalid_gradient);
  EXPECT_TRUE(ledger.fail(error(Errc::timeout)).empty());
  ledger.report(kB, report({kOfB}, {}));
  DecidedSet decided;
  decided.decide_next(false);
  const PassActions ended = ledger.decided({pass(1), error(Errc::invalid_gradient), decided});
  EXPECT_EQ(sent_to<End>(kC, ended).size(), 1u);
  EXPECT_EQ(sent_to<End>(kB, ended).size(), 1u);
}

TEST(PassLedger, AFailureBeforeTheGrantIsDecidedAtTheGrant) {
  PassLedger ledger(kContext, kA, Mode::smart);
  EXPECT_TRUE(ledger.fail(error(Errc::timeout)).empty());
  EXPECT_EQ(failure(ledger.granted({1})), Errc::timeout);
}

TEST(PassLedger, ARefusalEndsIt) {
  PassLedger ledger(kContext, kA, Mode::smart);
  EXPECT_EQ(all_of<PassEnded>(ledger.refused(error(Errc::pass_busy))).at(0).outcome.error().code(), Errc::pass_busy);
  EXPECT_EQ(ledger.phase(), Phase::ended);
}

TEST(PassLedger, DA16_AReportAboutAnothersMessageFailsThePass) {
  PassLedger ledger = begun();
  EXPECT_EQ(failure(ledger.report(kB, report({kOfC}, {}))), Errc::malformed_payload);
  PassLedger roots = begun();
  EXPECT_EQ(failure(roots.report(kB, report({kRoots}, {}))), Errc::malformed_payload);
}

TEST(PassLedger, DA16_M_ASecondDoneOfOneWorkerIsNotAnothers) {
  PassLedger ledger = begun();
  ledger.report(kA, report({kRoots}, {kOfB, kOfC}));
  ledger.report(kB, report({kOfB}, {}));
  ledger.report(kC, report({kOfC}, {}));
  EXPECT_TRUE(ledger.done(kA).empty());
  EXPECT_TRUE(ledger.done(kB).empty());
  // The pass goes on until C has sent its Done. A second Done of B is an error, which names B.
  const PassActions again = ledger.done(kB);
  EXPECT_EQ(failure(again), Errc::malformed_payload);
}

TEST(PassLedger, DA6_AnEntryMadeTwiceFailsThePass) {
  PassLedger ledger = begun();
  ledger.report(kB, report({kOfB}, {}));
  EXPECT_EQ(failure(ledger.report(kB, report({kOfB}, {}))), Errc::malformed_payload);
}

TEST(PassLedger, DA4_WhoIsDoneBeforeTheClosingFailsThePass) {
  PassLedger ledger = begun();
  EXPECT_EQ(failure(ledger.done(kA)), Errc::malformed_payload);
}

TEST(PassLedger, FastNamesTheMessageThatWaits) {
  PassLedger ledger = begun(Mode::fast);
  ledger.report(kA, {pass(1), {kRoots}, {kOfB}, {message_of(kA, 7)}, false});
  const PassActions closed = ledger.report(kB, {pass(1), {kOfB}, {}, {}, true});
  EXPECT_EQ(failure(closed), Errc::unused_branch);
  EXPECT_NE(sent_to<Decide>(kHome, closed).at(0).outcome.error().text().find("1.7"), std::string::npos);
}

TEST(PassLedger, FastIsOkWhenAllHaveDrained) {
  PassLedger ledger = begun(Mode::fast);
  ledger.report(kA, {pass(1), {kRoots}, {kOfB}, {}, true});
  const PassActions closed = ledger.report(kB, {pass(1), {kOfB}, {}, {}, true});
  EXPECT_TRUE(sent_to<Decide>(kHome, closed).at(0).outcome);
}

}  // namespace
}  // namespace caftan::autograd::pass_ledger_test
