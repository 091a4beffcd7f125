// The actor of a fork: which actors it sends requests to, what it answers, and when it ends.
#include "rref/user_rref_actor.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "caftan/transport/stepped_executor.hpp"
#include "exchange_side.hpp"

namespace caftan::actors::user_rref_actor_test {
namespace {

constexpr RRefId kRRef{WorkerId{1}, Incarnation{2}, 1};
constexpr ForkId kFork{WorkerId{0}, Incarnation{1}, 2};
constexpr ForkId kParent{WorkerId{2}, Incarnation{3}, 3};
constexpr ForkId kChild{WorkerId{2}, Incarnation{3}, 4};
constexpr WorkerLife kOwner{WorkerId{1}, Incarnation{2}};
constexpr rpc::PeerSession kOwnerSession{{WorkerId{1}, Incarnation{2}}, 1};
constexpr rpc::PeerSession kOtherSession{{WorkerId{2}, Incarnation{3}}, 1};

/// A worker that has one fork. It keeps what the fork's actor asks for.
class ScriptedWorker final : public UserRRefPorts {
 public:
  void user_confirmed(ForkId id, Result<void> outcome) override {
    EXPECT_EQ(id, kFork);
    outcomes.push_back(outcome ? Errc::ok : outcome.error().code());
  }
  void user_ending(ForkId id) override {
    EXPECT_EQ(id, kFork);
    ++endings;
  }
  bool start_is_over() const noexcept override { return is_started; }
  std::optional<rpc::PeerSession> send_fork_request(const caf::strong_actor_ptr&, const ForkRequested& request,
                                                    const WorkerLife& owner) override {
    EXPECT_EQ(owner, kOwner);
    if (session) requests.push_back(request.fork);
    return session;
  }

  bool is_started = true;
  std::optional<rpc::PeerSession> session = kOwnerSession;
  std::vector<Errc> outcomes;
  std::vector<ForkId> requests;
  int endings = 0;
};

/// The actor of a parent or child at another worker; keeps the messages that it gets.
class Neighbour final : public caf::event_based_actor {
 public:
  Neighbour(caf::actor_config& config, std::vector<ForkId>& accepted)
      : caf::event_based_actor(config), accepted_(accepted) {
    set_exit_handler([this](const caf::exit_msg& exit) {
      if (exit.source == address()) quit(exit.reason);
    });
  }
  caf::behavior make_behavior() override {
    return {[this](const ForkAccepted& accepted) { accepted_.push_back(accepted.child); }};
  }

 private:
  std::vector<ForkId>& accepted_;
};

class UserRRefActorTest : public ::testing::Test {
 protected:
  ~UserRRefActorTest() override {
    for (caf::actor* one : {&actor_, &neighbour_}) {
      if (*one) caf::anon_send_exit(*one, caf::exit_reason::kill);
      *one = nullptr;
    }
    executor_.run();
  }

  void spawn(rpc::UserFork fork, const caf::strong_actor_ptr& parent) {
    actor_ = side_.host.spawn(user_rref_actor, &worker_, std::move(fork), ForkRequested{kRRef, {}, kFork, kParent},
                              kOwner, parent);
    executor_.run();
  }
  void spawn_created() { spawn(rpc::UserFork::created(kFork, kOwnerSession, "b"), nullptr); }
  void spawn_with_parent() {
    spawn(rpc::UserFork::from_parent(kFork, {kParent, kOtherSession}, "b"),
          caf::actor_cast<caf::strong_actor_ptr>(neighbour_));
  }
  template <class Message>
  void send(Message message) {
    caf::anon_send(actor_, std::move(message));
    executor_.run();
  }
  template <class Event>
  void send_event(Event event) {
    send(UserEvent{std::move(event)});
  }
  void answer_creation(Result<void> answer) {
    send_event(user_event::CreationAnswered{std::make_shared<Result<void>>(std::move(answer))});
  }
  void hand_over_child() {
    send_event(user_event::ChildHandedOver{kChild, kOtherSession, caf::actor_cast<caf::strong_actor_ptr>(neighbour_)});
  }
  void end_neighbour() {
    caf::anon_send_exit(neighbour_, caf::exit_reason::user_shutdown);
    executor_.run();
  }

  transport::SteppedExecutor executor_{1};
  remote::ActorsOfSide side_{executor_, remote::MessageRegistry(), WorkerId{0}};
  ScriptedWorker worker_;
  std::vector<ForkId> accepted_;
  caf::actor neighbour_ = side_.host.spawn<Neighbour>(accepted_);
  caf::actor actor_;
};

using Outcomes = std::vector<Errc>;
using Forks = std::vector<ForkId>;

TEST_F(UserRRefActorTest, TheReplyToItsCreationConfirmsACreatorsFork) {
  spawn_created();
  EXPECT_TRUE(worker_.requests.empty());
  answer_creation({});
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::ok});
  EXPECT_EQ(worker_.endings, 0);
}

TEST_F(UserRRefActorTest, RR7_EndsWithItsLastHandle) {
  spawn_created();
  answer_creation({});
  send_event(user_event::HandleDropped{});
  EXPECT_EQ(worker_.endings, 1);
}

TEST_F(UserRRefActorTest, AFailedCreationIsTheOutcome) {
  spawn_created();
  answer_creation(Error(Errc::remote_exception, "no"));
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::remote_exception});
}

TEST_F(UserRRefActorTest, RR5_AParentsChildAsksTheOwnerAndThenAccepts) {
  spawn_with_parent();
  EXPECT_EQ(worker_.requests, Forks{kFork});
  EXPECT_TRUE(worker_.outcomes.empty());
  send(ForkAnswered{kFork, Errc::ok});
  EXPECT_EQ(accepted_, Forks{kFork});
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::ok});
}

TEST_F(UserRRefActorTest, AReplyThatRefusesIsTheOutcomeAndNothingIsAccepted) {
  spawn_with_parent();
  send(ForkAnswered{kFork, Errc::rref_deleted});
  EXPECT_TRUE(accepted_.empty());
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::rref_deleted});
}

TEST_F(UserRRefActorTest, RR10_TheEndOfTheParentLeavesTheDecisionToTheOwner) {
  spawn_with_parent();
  end_neighbour();
  EXPECT_TRUE(worker_.outcomes.empty());
  send(ForkAnswered{kFork, Errc::ok});
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::ok});
  EXPECT_EQ(worker_.endings, 0);
}

TEST_F(UserRRefActorTest, RR11_WithoutASessionItFailsOnceTheStartIsOver) {
  worker_.session.reset();
  spawn_with_parent();
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::peer_unreachable});
}

TEST_F(UserRRefActorTest, RR11_WhileTheWorkerStartsItAsksWithTheFirstSession) {
  worker_.session.reset();
  worker_.is_started = false;
  spawn_with_parent();
  EXPECT_TRUE(worker_.outcomes.empty());
  worker_.session = kOwnerSession;
  send_event(user_event::SessionOpened{});
  send_event(user_event::SessionOpened{});
  EXPECT_EQ(worker_.requests, Forks{kFork}) << "it asks once";
}

TEST_F(UserRRefActorTest, RR11_TheDeadlineEndsTheWait) {
  spawn_with_parent();
  send_event(user_event::Deadline{});
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::peer_unreachable});
  send(ForkAnswered{kFork, Errc::ok});
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::peer_unreachable}) << "a late reply changes nothing";
}

TEST_F(UserRRefActorTest, RR7_StaysWhileAChildIsPendingAndEndsWhenItIsAccepted) {
  spawn_created();
  answer_creation({});
  hand_over_child();
  send_event(user_event::HandleDropped{});
  EXPECT_EQ(worker_.endings, 0);
  send(ForkAccepted{kChild});
  EXPECT_EQ(worker_.endings, 1);
}

TEST_F(UserRRefActorTest, RR7_EndsWhenItsPendingChildEnds) {
  spawn_created();
  answer_creation({});
  hand_over_child();
  send_event(user_event::HandleDropped{});
  end_neighbour();
  EXPECT_EQ(worker_.endings, 1);
}

TEST_F(UserRRefActorTest, AnAcceptedChildIsUnlinked) {
  spawn_created();
  answer_creation({});
  hand_over_child();
  send(ForkAccepted{kChild});
  end_neighbour();
  EXPECT_EQ(worker_.endings, 0);
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::ok});
}

TEST_F(UserRRefActorTest, RR10_OnlyTheLossOfItsOwnersSessionFailsIt) {
  spawn_created();
  answer_creation({});
  send_event(user_event::OwnerLost{kOtherSession});
  EXPECT_EQ(worker_.outcomes, Outcomes{Errc::ok});
  send_event(user_event::OwnerLost{kOwnerSession});
  EXPECT_EQ(worker_.outcomes, (Outcomes{Errc::ok, Errc::peer_down}));
  EXPECT_EQ(worker_.endings, 0) << "the handle is still there";
}

TEST_F(UserRRefActorTest, FinishEndsItWithItsReason) {
  spawn_with_parent();
  send_event(user_event::Finish{Error(Errc::shut_down, "the worker leaves")});
  EXPECT_EQ(worker_.outcomes.front(), Errc::shut_down);
  EXPECT_EQ(worker_.endings, 1);
}

TEST_F(UserRRefActorTest, HoweverItEndsItsWorkerLearnsOfIt) {
  for (const auto reason : {caf::exit_reason::user_shutdown, caf::exit_reason::kill}) {
    worker_.outcomes.clear();
    worker_.endings = 0;
    spawn_created();
    caf::anon_send_exit(actor_, reason);
    executor_.run();
    EXPECT_EQ(worker_.outcomes, Outcomes{Errc::rref_deleted});
    EXPECT_EQ(worker_.endings, 1);
  }
}

}  // namespace
}  // namespace caftan::actors::user_rref_actor_test
