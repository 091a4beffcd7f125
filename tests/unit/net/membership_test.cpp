#include "caftan/net/internal/membership.hpp"

#include <gtest/gtest.h>

#include <string>

#include "caftan/wire/archive.hpp"

namespace caftan::net::membership_test {
namespace {

std::vector<MemberEntry> make_world() {
  return {{"agent", {0}, "unix:a"}, {"observer0", {1}, ""}, {"observer1", {2}, ""}};
}

Join make_join(std::uint32_t id, std::uint64_t incarnation) {
  const std::vector<MemberEntry> world = make_world();
  return {world[id].name, {id}, {incarnation}, "unix:" + std::to_string(id) + "-" + std::to_string(incarnation)};
}

Membership make_membership(std::uint32_t self) {
  auto membership = Membership::make(make_world(), make_join(self, 100 + self));
  EXPECT_TRUE(membership);
  return *std::move(membership);
}

Membership make_complete_coordinator() {
  Membership coordinator = make_membership(0);
  EXPECT_TRUE(coordinator.join(make_join(1, 101)));
  EXPECT_TRUE(coordinator.join(make_join(2, 102)));
  return coordinator;
}

TEST(Membership, SE20_AWorldWithGapsRepetitionsOrWithoutUsIsRefused) {
  const Join self = make_join(0, 1);
  const std::vector<std::vector<MemberEntry>> worlds = {
      {},
      {{"agent", {0}, ""}, {"b", {2}, ""}},
      {{"agent", {0}, ""}, {"b", {0}, ""}},
      {{"agent", {0}, ""}, {"agent", {1}, ""}},
      {{"agent", {0}, ""}, {"", {1}, ""}},
      {{"agent", {1}, ""}, {"b", {0}, ""}},
      {{"agent", {0}, ""}, {std::string(65, 'x'), {1}, ""}},
  };
  for (const auto& world : worlds) {
    const auto membership = Membership::make(world, self);
    ASSERT_FALSE(membership);
    EXPECT_EQ(membership.error().code(), Errc::invalid_config);
  }
  EXPECT_FALSE(Membership::make(make_world(), make_join(0, 0)));
}

TEST(Membership, SE21_NamesWhoIsMissingUntilAllHaveJoined) {
  Membership coordinator = make_membership(0);
  EXPECT_EQ(coordinator.missing(), (std::vector<std::string>{"observer0", "observer1"}));
  ASSERT_TRUE(coordinator.join(make_join(2, 102)));
  EXPECT_EQ(coordinator.missing(), std::vector<std::string>{"observer0"});
  EXPECT_FALSE(coordinator.complete());
  ASSERT_TRUE(coordinator.join(make_join(1, 101)));
  EXPECT_TRUE(coordinator.complete());
}

TEST(Membership, SE21_ASessionAloneIsNotAJoin) {
  Membership coordinator = make_membership(0);
  EXPECT_TRUE(*coordinator.on_up({{1}, {101}}));
  EXPECT_EQ(coordinator.missing().size(), 2U);
  EXPECT_TRUE(*coordinator.join(make_join(1, 101)));
  EXPECT_EQ(coordinator.missing(), std::vector<std::string>{"observer1"});
}

TEST(Membership, SE22_AJoinMayBeRepeated) {
  Membership coordinator = make_complete_coordinator();
  const std::uint64_t revision = coordinator.view().revision;
  EXPECT_FALSE(*coordinator.join(make_join(1, 101)));
  EXPECT_EQ(coordinator.view().revision, revision);
  Membership incomplete = make_membership(0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(incomplete.join(make_join(1, 101)));
  EXPECT_FALSE(incomplete.complete());
  EXPECT_EQ(incomplete.missing(), std::vector<std::string>{"observer1"});
}

TEST(Membership, SE23_StrangersAndDuplicatesAreRefusedWithTypedErrors) {
  Membership coordinator = make_complete_coordinator();
  ASSERT_TRUE(coordinator.on_up({{1}, {101}}));
  EXPECT_EQ(coordinator.join({"stranger", {3}, {7}, ""}).error().code(), Errc::unknown_worker);
  EXPECT_NE(coordinator.join({"stranger", {3}, {7}, ""}).error().text().find("agent, observer0, observer1"),
            std::string::npos);
  EXPECT_EQ(coordinator.join({"observer0", {2}, {7}, ""}).error().code(), Errc::invalid_config);
  EXPECT_EQ(coordinator.join(make_join(1, 7)).error().code(), Errc::duplicate_worker);
  EXPECT_EQ(coordinator.join(make_join(0, 7)).error().code(), Errc::duplicate_worker)
      << "that is the coordinator itself";
  EXPECT_EQ(coordinator.on_up({{1}, {7}}).error().code(), Errc::duplicate_worker);
  EXPECT_EQ(coordinator.on_up({{3}, {7}}).error().code(), Errc::unknown_worker);
  EXPECT_EQ(coordinator.join(make_join(1, 0)).error().code(), Errc::peer_down);
  EXPECT_TRUE(coordinator.admit(make_join(1, 101))) << "a second connection of the same life";
}

TEST(Membership, SE24_ARestartedWorkerTakesItsPlaceAndTheOldLifeNeverReturns) {
  Membership coordinator = make_complete_coordinator();
  ASSERT_TRUE(coordinator.on_up({{1}, {101}}));
  EXPECT_TRUE(coordinator.on_down({{1}, {101}}));
  EXPECT_FALSE(coordinator.on_down({{1}, {101}})) << "peer_down is delivered once";
  EXPECT_FALSE(coordinator.is_up({1}));
  EXPECT_TRUE(*coordinator.join(make_join(1, 201)));
  EXPECT_TRUE(*coordinator.on_up({{1}, {201}}));
  EXPECT_FALSE(*coordinator.on_up({{1}, {201}}));
  EXPECT_EQ(coordinator.on_up({{1}, {101}}).error().code(), Errc::peer_down);
  EXPECT_EQ(coordinator.admit(make_join(1, 101)).error().code(), Errc::peer_down);
  EXPECT_FALSE(coordinator.on_down({{1}, {101}})) << "a late end of the old life";
  EXPECT_TRUE(coordinator.is_up({1}));
  EXPECT_EQ(coordinator.find("observer0")->address, "unix:1-201");
}

TEST(Membership, SE24_TheSameLifeMayHaveANewSession) {
  Membership coordinator = make_complete_coordinator();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(*coordinator.on_up({{1}, {101}}));
    EXPECT_TRUE(coordinator.on_down({{1}, {101}}));
  }
}

TEST(Membership, SE25_AddressesAreLearntFromTheView) {
  Membership observer = make_membership(1);
  EXPECT_EQ(observer.find("observer1")->address, "");
  const auto changed = observer.apply(make_complete_coordinator().view());
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed, (std::vector<WorkerId>{{0}, {2}}));
  EXPECT_EQ(observer.find("observer1")->address, "unix:2-102");
  EXPECT_EQ(observer.find(WorkerId{2})->incarnation, Incarnation{102});
  EXPECT_TRUE(observer.complete());
}

TEST(Membership, K7_SE34_ANewLifeAtTheSameAddressMakesANewView) {
  Membership coordinator = make_complete_coordinator();
  const View before = coordinator.view();
  Join again = make_join(1, 201);
  again.address = make_join(1, 101).address;
  ASSERT_TRUE(coordinator.on_up({again.id, again.incarnation}, "there"));
  EXPECT_TRUE(coordinator.join(again).value()) << "its session is up before it has joined";
  EXPECT_GT(coordinator.view().revision, before.revision);
  EXPECT_FALSE(coordinator.join(again).value());
}

TEST(Membership, SE25_AnOlderViewChangesNothing) {
  Membership coordinator = make_complete_coordinator();
  const View old = coordinator.view();
  ASSERT_TRUE(coordinator.join(make_join(2, 202)));
  Membership observer = make_membership(1);
  EXPECT_EQ(observer.apply(coordinator.view())->size(), 2U);
  EXPECT_TRUE(observer.apply(old)->empty());
  EXPECT_EQ(observer.find("observer1")->incarnation, Incarnation{202});
}

TEST(Membership, SE25_WhatWeSawOurselvesOutlivesAViewThatDoesNotKnowItYet) {
  Membership observer = make_membership(1);
  ASSERT_TRUE(observer.on_up({{2}, {202}}));
  EXPECT_TRUE(observer.apply(make_complete_coordinator().view()));
  EXPECT_EQ(observer.find("observer1")->incarnation, Incarnation{202});
  EXPECT_TRUE(observer.is_up({2}));
}

TEST(Membership, SE25_AViewThatDoesNotFitTheJobIsRefusedWhole) {
  Membership observer = make_membership(1);
  const View good = make_complete_coordinator().view();
  const auto refused = [&](auto&& spoil) {
    View view = good;
    spoil(view);
    const auto applied = observer.apply(view);
    EXPECT_EQ(observer.find("agent")->incarnation, Incarnation{}) << "nothing may have changed";
    return applied ? Errc::ok : applied.error().code();
  };
  EXPECT_EQ(refused([](View& view) { view.members.pop_back(); }), Errc::malformed_payload);
  EXPECT_EQ(refused([](View& view) { std::swap(view.members[0], view.members[2]); }), Errc::malformed_payload);
  EXPECT_EQ(refused([](View& view) { view.members[2].incarnation = {}; }), Errc::malformed_payload);
  EXPECT_EQ(refused([](View& view) { view.members[2].address.assign(256, 'x'); }), Errc::malformed_payload);
  EXPECT_EQ(refused([](View& view) { view.members[1].incarnation = {9}; }), Errc::duplicate_worker);
  EXPECT_TRUE(observer.apply(good));
}

TEST(Membership, SE25_MessagesTravel) {
  const View view = make_complete_coordinator().view();
  const auto bytes = wire::encode(view);
  ASSERT_TRUE(bytes);
  const auto back = wire::decode<View>(*bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->revision, view.revision);
  EXPECT_EQ(back->members, view.members);
}

TEST(Membership, SE20_UnknownWorkersAreNamedWithThoseThereAre) {
  const auto found = make_membership(0).find("obsever0");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message(),
            "unknown_worker: no worker \"obsever0\" in this job; there are agent, observer0, observer1");
}

}  // namespace
}  // namespace caftan::net::membership_test
