// How the workers of a job connect with each other, seen from each worker.
#include "caftan/net/internal/meeting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::net::meeting_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using OnMet = Meeting::OnMet;
using Report = Meeting::Loss::Report;

constexpr base::TimePoint kBegin{1h};

/// The first life of a worker.
constexpr Incarnation life_of(std::uint32_t id) { return {100 + id}; }
/// The life that follows it.
constexpr Incarnation next_life_of(std::uint32_t id) { return {200 + id}; }

/// Three workers a, b and c; all addresses are known.
Meeting make_meeting(std::uint32_t self, Meeting::Options options = {.addresses = {"unix:a", "unix:b", "unix:c"}}) {
  const std::vector<MemberEntry> world = {{"a", {0}, ""}, {"b", {1}, ""}, {"c", {2}, ""}};
  auto membership = Membership::make(world, {world[self].name, {self}, life_of(self), ""});
  EXPECT_TRUE(membership);
  options.start_timeout = 10s;
  return Meeting(*std::move(membership), std::move(options));
}

void connect(Meeting& meeting, std::uint32_t peer, Incarnation life, const std::string& address = {}) {
  EXPECT_TRUE(meeting.on_session_start({{peer}, life}, "there"));
  meeting.on_connected({{peer}, life}, address);
}
void connect(Meeting& meeting, std::uint32_t peer) { connect(meeting, peer, life_of(peer)); }

View make_view(std::uint64_t revision = 1, Incarnation b = life_of(1), const std::string& at = "unix:b") {
  return {revision, {{"a", {0}, life_of(0), "unix:a"}, {"b", {1}, b, at}, {"c", {2}, life_of(2), "unix:c"}}};
}

/// A coordinator whose start has ended.
Meeting make_serving_coordinator() {
  Meeting coordinator = make_meeting(0);
  connect(coordinator, 1);
  connect(coordinator, 2);
  EXPECT_TRUE(coordinator.take_view());
  coordinator.on_met({{1}, life_of(1)});
  coordinator.on_met({{2}, life_of(2)});
  EXPECT_TRUE(coordinator.take_ready_report());
  EXPECT_TRUE(coordinator.end_start());
  return coordinator;
}

/// The worker c, whose start has ended.
Meeting make_serving_worker() {
  Meeting worker = make_meeting(2);
  connect(worker, 0);
  connect(worker, 1);
  EXPECT_TRUE(worker.on_view(kCoordinator, make_view()));
  EXPECT_TRUE(worker.take_ready_report());
  EXPECT_TRUE(worker.end_start());
  return worker;
}

Error late(Meeting& meeting, const std::vector<std::string>& siblings = {}) {
  meeting.fail_late(siblings);
  const auto outcome = meeting.outcome();
  EXPECT_TRUE(outcome && !*outcome);
  return outcome->error();
}

// ---- the start

TEST(Meeting, SE27_TheCoordinatorSendsItsViewOnceWhenAllHaveCome) {
  Meeting coordinator = make_meeting(0);
  connect(coordinator, 1);
  EXPECT_FALSE(coordinator.take_view());
  ASSERT_TRUE(coordinator.on_session_start({{2}, life_of(2)}, ""));
  EXPECT_FALSE(coordinator.take_view()) << "that session cannot be used yet";
  coordinator.on_connected({{2}, life_of(2)}, "tcp:h:1");
  const auto view = coordinator.take_view();
  ASSERT_TRUE(view);
  EXPECT_EQ(view->members[1].incarnation, life_of(1));
  EXPECT_FALSE(coordinator.take_view());
}

TEST(Meeting, SE27_ACoordinatorThatIsAloneIsReadyAtOnce) {
  auto membership = Membership::make({{"a", {0}, ""}}, {"a", {0}, life_of(0), ""});
  Meeting coordinator(*std::move(membership), {.addresses = {""}});
  EXPECT_TRUE(coordinator.take_view());
  const auto all = coordinator.take_ready_report();
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->ends_start);
  EXPECT_THAT(all->receivers, IsEmpty());
  EXPECT_TRUE(coordinator.end_start());
  EXPECT_TRUE(coordinator.start_is_over());
}

TEST(Meeting, SE27_AWorkerReportsToTheCoordinatorOnceItHasMetAllOthers) {
  Meeting worker = make_meeting(1);
  connect(worker, 0);
  EXPECT_FALSE(worker.take_ready_report());
  connect(worker, 2);
  const auto all = worker.take_ready_report();
  ASSERT_TRUE(all);
  EXPECT_THAT(all->receivers, ElementsAre(kCoordinator));
  EXPECT_FALSE(all->ends_start) << "the coordinator says when all have met";
  EXPECT_FALSE(worker.take_ready_report());
  EXPECT_FALSE(worker.outcome());
}

TEST(Meeting, SE27_TheCoordinatorEndsTheStartWhenAllHaveSaidSo) {
  Meeting coordinator = make_meeting(0);
  connect(coordinator, 1);
  EXPECT_EQ(coordinator.on_met({{1}, life_of(1)}), OnMet::look);
  connect(coordinator, 2);
  EXPECT_EQ(coordinator.on_met({{2}, life_of(2)}), OnMet::look);
  EXPECT_FALSE(coordinator.take_ready_report()) << "the others have not got the view";
  ASSERT_TRUE(coordinator.take_view());
  const auto all = coordinator.take_ready_report();
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->ends_start);
  EXPECT_THAT(all->receivers, ElementsAre(WorkerId{1}, WorkerId{2}));
}

TEST(Meeting, SE27_ASecondSessionOrReportOfAMemberIsNotAnotherMember) {
  Meeting coordinator = make_meeting(0);
  connect(coordinator, 1);
  connect(coordinator, 1);
  EXPECT_FALSE(coordinator.take_view());
  connect(coordinator, 2);
  ASSERT_TRUE(coordinator.take_view());
  coordinator.on_met({{1}, life_of(1)});
  coordinator.on_met({{1}, life_of(1)});
  EXPECT_FALSE(coordinator.take_ready_report());
  EXPECT_FALSE(coordinator.on_session_end({{1}, life_of(1)}).is_last);
  coordinator.on_met({{2}, life_of(2)});
  EXPECT_TRUE(coordinator.take_ready_report()) << "there is another session with that life";
}

TEST(Meeting, SE27_AMemberThatIsLostHasToComeAndReportAgain) {
  Meeting coordinator = make_meeting(0);
  connect(coordinator, 1);
  connect(coordinator, 2);
  ASSERT_TRUE(coordinator.take_view());
  for (const std::uint32_t id : {1U, 2U}) coordinator.on_met({{id}, life_of(id)});
  EXPECT_TRUE(coordinator.on_session_end({{1}, life_of(1)}).is_last);
  EXPECT_FALSE(coordinator.take_ready_report());
  connect(coordinator, 1);
  EXPECT_FALSE(coordinator.take_ready_report()) << "it has not reported since";
  coordinator.on_met({{1}, life_of(1)});
  EXPECT_TRUE(coordinator.take_ready_report());
}

TEST(Meeting, SE27_OnlyTheCoordinatorIsBelievedThatAllHaveMet) {
  Meeting worker = make_meeting(1);
  connect(worker, 0);
  connect(worker, 2);
  EXPECT_EQ(worker.on_met({{2}, life_of(2)}), OnMet::nothing);
  EXPECT_EQ(worker.on_met({kCoordinator, life_of(0)}), OnMet::end_start);
  EXPECT_TRUE(worker.on_view({2}, make_view())->empty()) << "nor that it has a view";
}

TEST(Meeting, SE27_WhatALifeSaidThatHasEndedDoesNotCount) {
  Meeting coordinator = make_meeting(0);
  connect(coordinator, 1);
  connect(coordinator, 2);
  ASSERT_TRUE(coordinator.take_view());
  EXPECT_EQ(coordinator.on_met({{1}, life_of(1)}), OnMet::look);
  EXPECT_TRUE(coordinator.on_session_end({{1}, life_of(1)}).is_last);
  EXPECT_EQ(coordinator.on_met({{1}, life_of(1)}), OnMet::nothing);
  connect(coordinator, 1, next_life_of(1));
  EXPECT_EQ(coordinator.on_met({{1}, life_of(1)}), OnMet::nothing);
  EXPECT_EQ(coordinator.on_met({{2}, life_of(2)}), OnMet::look);
  ASSERT_TRUE(coordinator.take_view());
  EXPECT_FALSE(coordinator.take_ready_report()) << "b's present life has not said so";
  EXPECT_EQ(coordinator.on_met({{1}, next_life_of(1)}), OnMet::look);
  EXPECT_TRUE(coordinator.take_ready_report());
}

TEST(Meeting, SE27_ANewLifeIsAnsweredAfterTheStartOfTheOthers) {
  Meeting coordinator = make_serving_coordinator();
  EXPECT_EQ(coordinator.on_session_end({{1}, life_of(1)}).report, Report::now);
  connect(coordinator, 1, next_life_of(1));
  EXPECT_EQ(coordinator.on_met({{1}, next_life_of(1)}), OnMet::answer);
}

TEST(Meeting, SE24_ALifeIsLostWithTheLastOfItsSessions) {
  Meeting coordinator = make_serving_coordinator();
  connect(coordinator, 1);
  EXPECT_FALSE(coordinator.on_session_end({{1}, life_of(1)}).is_last);
  EXPECT_TRUE(coordinator.on_session_end({{1}, life_of(1)}).is_last);
  EXPECT_FALSE(coordinator.on_session_end({{0}, life_of(0)}).is_last) << "with itself";
}

TEST(Meeting, SE28_WhoLeavesAfterItsOwnStartDoesNotHoldUpTheOthers) {
  Meeting worker = make_meeting(1);
  connect(worker, 0);
  connect(worker, 2);
  ASSERT_TRUE(worker.take_ready_report());
  EXPECT_EQ(worker.on_session_end({kCoordinator, life_of(0)}).report, Report::after_start);
  EXPECT_EQ(worker.on_met({kCoordinator, life_of(0)}), OnMet::end_start) << "its last words are read after its end";
  EXPECT_THAT(worker.end_start().value(), ElementsAre(kCoordinator));
  EXPECT_TRUE(*worker.outcome());
}

TEST(Meeting, SE28_WhoHasComeBackIsNotLost) {
  Meeting worker = make_meeting(1);
  connect(worker, 0);
  connect(worker, 2);
  EXPECT_EQ(worker.on_session_end({{2}, life_of(2)}).report, Report::after_start);
  connect(worker, 2, next_life_of(2));
  EXPECT_THAT(worker.end_start().value(), IsEmpty());
  EXPECT_FALSE(worker.end_start()) << "once";
}

TEST(Meeting, SE29_WhoHasNotComeIsNotLost) {
  Meeting worker = make_meeting(1);
  EXPECT_EQ(worker.why_unreachable({2}).code(), Errc::peer_unreachable);
  connect(worker, 2);
  worker.on_session_end({{2}, life_of(2)});
  EXPECT_EQ(worker.why_unreachable({2}).code(), Errc::peer_down);
}

// ---- missing members

TEST(Meeting, SE26_TheCoordinatorNamesTheMissingAndThoseThatHaveLeft) {
  Meeting coordinator = make_meeting(0, {.addresses = {"unix:a", "", ""}});
  EXPECT_EQ(late(coordinator).text(), "b, c have not come within 10s; 1 of 3 are here");
  coordinator = make_meeting(0, {.addresses = {"unix:a", "", ""}});
  connect(coordinator, 1);
  coordinator.on_session_end({{1}, life_of(1)});
  EXPECT_EQ(late(coordinator).text(), "c has not come within 10s; b has come and left; 1 of 3 are here");
}

TEST(Meeting, SE26_TheCoordinatorNamesWhoHasNotMetAllOthers) {
  Meeting coordinator = make_meeting(0);
  connect(coordinator, 1);
  connect(coordinator, 2);
  coordinator.on_met({{1}, life_of(1)});
  EXPECT_EQ(late(coordinator).text(), "c has not met all others within 10s; 3 of 3 are here");
}

TEST(Meeting, SE26_OthersNameOnlyThoseTheyWouldHaveMet) {
  const Meeting::Options options{.addresses = {"unix:a", "", ""}};
  Meeting worker = make_meeting(1, options);
  EXPECT_EQ(late(worker).text(), "a, the coordinator, has not come within 10s");
  worker = make_meeting(1, options);
  connect(worker, 0);
  EXPECT_EQ(late(worker).text(), "c has not come within 10s; 2 of 3 are here") << "the coordinator had announced it";
  worker = make_meeting(1, options);
  connect(worker, 0);
  EXPECT_THAT(late(worker, {"c"}).text(), HasSubstr("not all have met")) << "c is left to the launcher of both";
}

TEST(Meeting, SE26_WhatKeptAMemberAwayIsSaid) {
  Meeting worker = make_meeting(1);
  worker.begin_dial(kCoordinator, kBegin);
  worker.on_dial_failed(kCoordinator, Error(Errc::peer_down, "no worker listens"), kBegin);
  EXPECT_TRUE(worker.on_refused(Error(Errc::not_authenticated, "no proof")));
  EXPECT_THAT(late(worker).text(), ::testing::AllOf(HasSubstr("(last: no worker listens)"), HasSubstr("(refused: ")));
}

// ---- dialling

TEST(Meeting, SE33_MembersWithLowerNumbersAreDialledUntilTheyAreHere) {
  Meeting worker = make_meeting(2);
  EXPECT_THAT(worker.to_dial(), ElementsAre(WorkerId{0}, WorkerId{1}));
  EXPECT_EQ(worker.begin_dial({1}, kBegin), "unix:b");
  EXPECT_FALSE(worker.begin_dial({1}, kBegin)) << "it is being dialled";
  const auto failed = worker.on_dial_failed({1}, Error(Errc::timeout, "no answer"), kBegin);
  ASSERT_TRUE(failed.again);
  EXPECT_GT(*failed.again, kBegin);
  EXPECT_FALSE(worker.begin_dial({1}, kBegin)) << "its pause is not over";
  worker.end_dial({1});
  EXPECT_TRUE(worker.begin_dial({1}, *failed.again));
  worker.end_dial({1});
  connect(worker, 1);
  EXPECT_FALSE(worker.begin_dial({1}, *failed.again)) << "it is up";
}

TEST(Meeting, SE33_NeighboursInOneProcessAreNotDialled) {
  Meeting worker = make_meeting(2, {.addresses = {"", "", ""}, .in_one_process = true});
  EXPECT_THAT(worker.to_dial(), IsEmpty());
  connect(worker, 0);
  EXPECT_FALSE(worker.on_session_end({{0}, life_of(0)}).dial);
}

TEST(Meeting, SE33_AnyOtherRefusalFailsTheStart) {
  Meeting worker = make_meeting(1);
  worker.begin_dial(kCoordinator, kBegin);
  EXPECT_FALSE(worker.on_dial_failed(kCoordinator, Error(Errc::wrong_cluster, "another job"), kBegin).again);
  EXPECT_EQ(worker.outcome()->error().code(), Errc::wrong_cluster);
  EXPECT_EQ(worker.outcome()->error().worker(), "a");
  EXPECT_FALSE(worker.begin_dial(kCoordinator, kBegin));
  EXPECT_FALSE(worker.end_start());
}

TEST(Meeting, SE33_ADuplicateIsReportedOnceAndIsTheErrorOfALateStart) {
  Meeting worker = make_meeting(2);
  for (const WorkerId peer : {WorkerId{0}, WorkerId{1}}) {
    worker.begin_dial(peer, kBegin);
    const auto failed = worker.on_dial_failed(peer, Error(Errc::duplicate_worker, "process 7"), kBegin);
    EXPECT_TRUE(failed.again);
    EXPECT_EQ(failed.duplicate.has_value(), peer == kCoordinator) << "once";
  }
  connect(worker, 0);
  const Error error = late(worker);
  EXPECT_EQ(error.code(), Errc::duplicate_worker);
  EXPECT_EQ(error.text(), "still refused after 10s: b: process 7");
}

TEST(Meeting, SE34_AnAddressThatIsNotFixedIsThatOfThePresentLife) {
  Meeting worker = make_meeting(2, {.addresses = {"unix:a", "", ""}});
  EXPECT_FALSE(worker.begin_dial({1}, kBegin)) << "where?";
  connect(worker, 0);
  EXPECT_THAT(worker.on_view(kCoordinator, make_view()).value(), ElementsAre(WorkerId{1}));
  EXPECT_EQ(worker.begin_dial({1}, kBegin), "unix:b");
  worker.end_dial({1});
  EXPECT_THAT(worker.on_view(kCoordinator, make_view(2, next_life_of(1), "unix:b2")).value(), ElementsAre(WorkerId{1}));
  EXPECT_EQ(worker.begin_dial({1}, kBegin), "unix:b2");
  Meeting fixed = make_meeting(2);
  EXPECT_TRUE(fixed.on_view(kCoordinator, make_view(1, life_of(1), "unix:elsewhere")));
  EXPECT_EQ(fixed.begin_dial({1}, kBegin), "unix:b");
}

TEST(Meeting, SE34_TheCoordinatorSendsItsViewAgainWhenANewLifeHasJoined) {
  Meeting coordinator = make_serving_coordinator();
  coordinator.on_session_end({{1}, life_of(1)});
  connect(coordinator, 1, next_life_of(1), "tcp:h:2");
  const auto view = coordinator.take_view();
  ASSERT_TRUE(view);
  EXPECT_EQ(view->members[1].incarnation, next_life_of(1));
}

TEST(Meeting, SE34_AfterTheStartOnlyALifeIsDialledThatTheCoordinatorHasAnnounced) {
  Meeting worker = make_serving_worker();
  EXPECT_TRUE(worker.on_session_end({{1}, life_of(1)}).dial);
  EXPECT_FALSE(worker.begin_dial({1}, kBegin)) << "the life that was lost is not met again";
  EXPECT_THAT(worker.on_view(kCoordinator, make_view(2, next_life_of(1))).value(), ElementsAre(WorkerId{1}));
  EXPECT_TRUE(worker.begin_dial({1}, kBegin));
  const Error no_answer(Errc::timeout, "no answer");
  EXPECT_TRUE(worker.on_dial_failed({1}, no_answer, kBegin).again);
  worker.end_dial({1});
  EXPECT_TRUE(worker.begin_dial({1}, kBegin + 9s));
  EXPECT_FALSE(worker.on_dial_failed({1}, no_answer, kBegin + 10s).again) << "for as long as a start may take";
}

TEST(Meeting, L1_SE34_AViewThatArrivesBehindANewerOneAnnouncesNothing) {
  Meeting worker = make_meeting(2, {.addresses = {"unix:a", "", ""}});
  connect(worker, 0);
  connect(worker, 1);
  EXPECT_TRUE(worker.on_view(kCoordinator, make_view()));
  EXPECT_TRUE(worker.take_ready_report());
  EXPECT_TRUE(worker.end_start());
  worker.on_session_end({{1}, life_of(1)});
  const Incarnation last_life{300};
  EXPECT_THAT(worker.on_view(kCoordinator, make_view(3, last_life, "unix:b3")).value(), ElementsAre(WorkerId{1}));
  EXPECT_THAT(worker.on_view(kCoordinator, make_view(2, next_life_of(1), "unix:b2")).value(), IsEmpty());
  EXPECT_EQ(worker.begin_dial({1}, kBegin), "unix:b3");
}

TEST(Meeting, L5_SE34_ANewLifeThatRefusesThisWorkerAfterTheStartIsReported) {
  Meeting worker = make_serving_worker();
  worker.on_session_end({{1}, life_of(1)});
  EXPECT_TRUE(worker.on_view(kCoordinator, make_view(2, next_life_of(1))));
  EXPECT_TRUE(worker.begin_dial({1}, kBegin));
  const auto failed = worker.on_dial_failed({1}, Error(Errc::not_authenticated, "another secret"), kBegin);
  EXPECT_FALSE(failed.again);
  ASSERT_TRUE(failed.given_up);
  EXPECT_EQ(failed.given_up->message(), "not_authenticated: b: another secret");
  Meeting starting = make_meeting(2);
  starting.begin_dial({1}, kBegin);
  EXPECT_FALSE(starting.on_dial_failed({1}, Error(Errc::not_authenticated, "another secret"), kBegin).given_up)
      << "the start fails with it";
}

TEST(Meeting, SE34_WithAHigherNumberItIsTheOtherThatDials) {
  Meeting coordinator = make_serving_coordinator();
  EXPECT_FALSE(coordinator.on_session_end({{1}, life_of(1)}).dial);
}

// ---- refusals and leaving

TEST(Meeting, RefusedConnectionsThatMayBeOfMembersAreReportedAFewTimes) {
  Meeting worker = make_meeting(1);
  EXPECT_FALSE(worker.on_refused(Error(Errc::malformed_payload, "no handshake")));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(worker.on_refused(Error(Errc::not_authenticated, "no proof")));
  EXPECT_FALSE(worker.on_refused(Error(Errc::not_authenticated, "no proof")));
}

TEST(Meeting, HS12_OtherSettingsFailTheStart) {
  Meeting worker = make_meeting(1);
  const Error other(Errc::invalid_config, "other settings");
  worker.on_other_settings(other);
  EXPECT_FALSE(worker.on_refused(Error(Errc::peer_down, "gone")));
  EXPECT_EQ(worker.outcome()->error().message(), other.message());
}

TEST(Meeting, AWorkerThatLeavesAdmitsNoPeerAndDialsNone) {
  Meeting worker = make_meeting(1);
  connect(worker, 2);
  worker.leave();
  EXPECT_TRUE(worker.start_is_over());
  EXPECT_EQ(worker.on_session_start({{0}, life_of(0)}, "").error().code(), Errc::shut_down);
  EXPECT_FALSE(worker.begin_dial({0}, kBegin));
  EXPECT_EQ(worker.on_session_end({{2}, life_of(2)}).report, Report::no);
}

}  // namespace
}  // namespace caftan::net::meeting_test
