#include "caftan/rpc/internal/user_fork.hpp"

#include <gtest/gtest.h>

#include <variant>

namespace caftan::rpc::user_fork_test {
namespace {

constexpr ForkId kFork{WorkerId{1}, Incarnation{11}, 5};
constexpr ForkId kParent{WorkerId{1}, Incarnation{11}, 4};
constexpr ForkId kChild{WorkerId{2}, Incarnation{12}, 6};
constexpr PeerSession kOwner{{WorkerId{0}, Incarnation{10}}, 1};
constexpr PeerSession kOwnerAgain{{WorkerId{0}, Incarnation{10}}, 2};
constexpr PeerSession kPeer{{WorkerId{1}, Incarnation{11}}, 1};

template <class Action>
const Action* get(const UserActions& actions) {
  for (const UserAction& action : actions) {
    if (const auto* found = std::get_if<Action>(&action)) return found;
  }
  return nullptr;
}

bool ends(const UserActions& actions) { return get<EndFork>(actions) != nullptr; }
Error error(Errc code) { return Error(code, "why"); }

// Returns a fork that a parent has handed over and whose request is under way to the owner.
UserFork make_asking() {
  UserFork fork = UserFork::from_parent(kFork, {kParent, kPeer}, "w0");
  fork.request_sent(kOwner);
  return fork;
}

UserFork make_confirmed() { return UserFork::from_owner(kFork, kOwner, "w0"); }

TEST(UserFork, RR5_AChildAsksTheOwnerFirst) {
  const UserFork fork = UserFork::from_parent(kFork, {kParent, kPeer}, "w0");
  const UserActions actions = fork.start();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(get<SendForkRequest>(actions)->parent, kParent);
  EXPECT_EQ(get<SendForkRequest>(actions)->parent_worker, kPeer.peer.id);
  EXPECT_TRUE(make_confirmed().start().empty());
  EXPECT_TRUE(UserFork::created(kFork, kOwner, "w0").start().empty());
}

TEST(UserFork, RR5_TheParentIsReleasedBeforeTheCallGoesOn) {
  UserFork fork = make_asking();
  const UserActions actions = fork.answered({});
  ASSERT_EQ(actions.size(), 2u);
  const auto& accept = std::get<SendAccept>(actions[0]);
  EXPECT_EQ(accept.fork, kFork);
  EXPECT_EQ(accept.parent, kParent);
  EXPECT_EQ(accept.session, kPeer);
  EXPECT_TRUE(std::holds_alternative<ForkConfirmed>(actions[1]));
  EXPECT_FALSE(fork.linked_parent());
  EXPECT_TRUE(fork.answered({}).empty());
}

TEST(UserFork, RR6_AnUnconfirmedChildMayNotBeUsedAndTheCreatorsOwnMay) {
  UserFork child = make_asking();
  EXPECT_FALSE(child.may_use());
  child.answered({});
  EXPECT_TRUE(child.may_use());
  EXPECT_TRUE(make_confirmed().may_use());
  EXPECT_TRUE(UserFork::created(kFork, kOwner, "w0").may_use());
}

TEST(UserFork, RR6_ARefusalEndsTheWaitingCallWithTheOwnersError) {
  UserFork fork = make_asking();
  const UserActions actions = fork.answered(error(Errc::rref_deleted));
  ASSERT_NE(get<ForkRefused>(actions), nullptr);
  EXPECT_EQ(get<ForkRefused>(actions)->error.code(), Errc::rref_deleted);
  EXPECT_EQ(get<SendAccept>(actions), nullptr);
  EXPECT_TRUE(fork.linked_parent()) << "the parent hears of it by the exit of this actor";
  EXPECT_TRUE(ends(fork.handle_dropped()));
}

TEST(UserFork, RR7_StaysUntilItsConfirmationIsAnswered) {
  UserFork fork = make_asking();
  EXPECT_FALSE(ends(fork.handle_dropped()));
  const UserActions actions = fork.answered({});
  EXPECT_NE(get<SendAccept>(actions), nullptr);
  EXPECT_TRUE(ends(actions));
  EXPECT_FALSE(ends(fork.handle_dropped())) << "it ends once";
}

TEST(UserFork, RR7_TheCreatorStaysUntilTheCreationIsAnswered) {
  UserFork fork = UserFork::created(kFork, kOwner, "w0");
  EXPECT_FALSE(ends(fork.handle_dropped()));
  EXPECT_TRUE(ends(fork.creation_answered({})));
}

TEST(UserFork, RR7_StaysWhileAChildIsPending) {
  UserFork fork = make_confirmed();
  EXPECT_EQ(get<LinkChild>(fork.child_handed_over(kChild, kPeer))->child, kChild);
  EXPECT_FALSE(ends(fork.handle_dropped()));
  EXPECT_EQ(fork.pending_children(), 1u);
  const UserActions actions = fork.child_accepted(kChild, kPeer);
  EXPECT_NE(get<UnlinkChild>(actions), nullptr);
  EXPECT_TRUE(ends(actions));
}

TEST(UserFork, RR5_AChildThatExitsIsNoLongerPending) {
  UserFork fork = make_confirmed();
  fork.child_handed_over(kChild, kPeer);
  fork.handle_dropped();
  EXPECT_TRUE(fork.child_exited(kFork, kPeer).empty());
  EXPECT_TRUE(fork.child_exited(kChild, kOwner).empty()) << "another session's exit says nothing";
  EXPECT_TRUE(fork.child_accepted(kChild, kOwner).empty());
  EXPECT_TRUE(ends(fork.child_exited(kChild, kPeer)));
}

TEST(UserFork, RR10_TheParentsExitChangesNothingButTheAccept) {
  UserFork fork = make_asking();
  fork.parent_exited();
  EXPECT_EQ(fork.state(), UserFork::State::awaiting);
  const UserActions actions = fork.answered({});
  EXPECT_EQ(get<SendAccept>(actions), nullptr);
  EXPECT_NE(get<ForkConfirmed>(actions), nullptr);
}

TEST(UserFork, RR10_TheLossOfTheOwnersSessionIsForGood) {
  UserFork fork = make_confirmed();
  EXPECT_EQ(get<ForkRefused>(fork.owner_lost(kOwner)), nullptr) << "no caller waits";
  EXPECT_EQ(fork.may_use().error().code(), Errc::peer_down);
  fork.request_sent(kOwnerAgain);
  EXPECT_TRUE(fork.answered({}).empty());
  EXPECT_EQ(fork.may_use().error().code(), Errc::peer_down);
  EXPECT_TRUE(ends(fork.handle_dropped()));
}

TEST(UserFork, RR10_AnotherSessionWithTheOwnerSaysNothing) {
  UserFork fork = make_confirmed();
  EXPECT_TRUE(fork.owner_lost(kOwnerAgain).empty());
  EXPECT_TRUE(fork.may_use());
  UserFork unsent = UserFork::from_parent(kFork, {kParent, kPeer}, "w0");
  EXPECT_TRUE(unsent.owner_lost(kOwner).empty()) << "nothing is registered yet, a next session may serve";
  EXPECT_EQ(unsent.state(), UserFork::State::awaiting);
}

TEST(UserFork, RR10_TheOwnersLossEndsTheWaitingCall) {
  UserFork asking = make_asking();
  const UserActions lost = asking.owner_lost(kOwner);
  ASSERT_NE(get<ForkRefused>(lost), nullptr);
  EXPECT_EQ(get<ForkRefused>(lost)->error.code(), Errc::peer_down);
}

TEST(UserFork, RR11_AtTheDeadlineTheCallFailsNamingTheOwner) {
  UserFork fork = UserFork::from_parent(kFork, {kParent, kPeer}, "w0");
  const UserActions actions = fork.deadline();
  ASSERT_NE(get<ForkRefused>(actions), nullptr);
  EXPECT_EQ(get<ForkRefused>(actions)->error.code(), Errc::peer_unreachable);
  EXPECT_NE(get<ForkRefused>(actions)->error.text().find("w0"), std::string::npos);
  EXPECT_TRUE(fork.answered({}).empty()) << "failed is final";
  EXPECT_TRUE(ends(fork.handle_dropped()));
}

TEST(UserFork, RR10_AFailedForkKeepsItsFirstError) {
  UserFork fork = make_asking();
  fork.answered(error(Errc::rref_deleted));
  EXPECT_TRUE(fork.owner_lost(kOwner).empty());
  EXPECT_EQ(fork.may_use().error().code(), Errc::rref_deleted);
}

TEST(UserFork, RR11_ADeadlineAfterTheAnswerSaysNothing) {
  UserFork fork = make_asking();
  fork.answered({});
  EXPECT_TRUE(fork.deadline().empty());
  EXPECT_TRUE(fork.may_use());
}

TEST(UserFork, RR4_IsPassedToItsOwnerOnlyInTheSessionThatCountsIt) {
  EXPECT_TRUE(may_pass_back(make_confirmed().owner(), kOwner));
  EXPECT_FALSE(may_pass_back(make_confirmed().owner(), kOwnerAgain));
  EXPECT_FALSE(may_pass_back(UserFork::from_parent(kFork, {kParent, kPeer}, "w0").owner(), kOwner))
      << "the owner was not asked yet";
}

TEST(UserFork, RR4_ACreationTheLaneRefusedFailsAtOnce) {
  UserFork fork = UserFork::created(kFork, kOwner, "w0");
  EXPECT_NE(get<ForkRefused>(fork.creation_answered(error(Errc::overloaded))), nullptr);
  EXPECT_EQ(fork.may_use().error().code(), Errc::overloaded);
  EXPECT_TRUE(fork.creation_answered({}).empty());
  EXPECT_TRUE(ends(fork.handle_dropped()));
}

TEST(UserFork, RR13_ARepeatedDropChangesNothing) {
  UserFork fork = make_confirmed();
  fork.child_handed_over(kChild, kPeer);
  EXPECT_TRUE(fork.handle_dropped().empty());
  EXPECT_TRUE(fork.handle_dropped().empty());
  EXPECT_FALSE(fork.ended());
}

}  // namespace
}  // namespace caftan::rpc::user_fork_test
