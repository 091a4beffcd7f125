// References between three workers: who may use them, what they keep alive, and that nothing is left (RR-1 to RR-14).
#include <algorithm>
#include <array>
#include <optional>

#include <gtest/gtest.h>
#include <caf/send.hpp>

#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "rref/rref_handles.hpp"
#include "rref_roles.hpp"

namespace caftan::test::rref_test {
namespace {

constexpr const char* kNothing = "0/0 0/0 0/0";

class RRefs : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  std::string live() { return test::live(cluster_, 3); }
  std::string live_at_rest() {
    cluster_.run_until_idle();
    return live();
  }

  /// With every second seed each worker guards its values (permissions.md, PM-5): that changes nothing for holders.
  static Registry make_registry() {
    Registry registry = make_rref_registry();
    if (GetParam() % 2 == 0) registry.permit({.others = {.uses = {.allowed = true}}});
    return registry;
  }

  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, RRefs, ::testing::Range<std::uint64_t>(1, 31));

// ---- the four ways to share a reference

TEST_P(RRefs, RR4_UserPassesItToItsOwnerAsArgument) {
  {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 20, 22);
    EXPECT_FALSE(r.is_owner());
    EXPECT_TRUE(cluster_[0].rpc_sync<&is_owner>("worker1", r));
    EXPECT_EQ(cluster_[0].rpc_sync<&read_local>("worker1", r), 42);
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, RR4_UserPassesItToItsOwnerAsResult) {
  {
    RRef<int> r = cluster_[0].rpc_sync<&make_at>("worker1", "worker0", 7);
    EXPECT_TRUE(r.is_owner());
    EXPECT_TRUE(r.confirmed_by_owner());
    EXPECT_EQ(*r.local_value(), 7);
    EXPECT_EQ(live_at_rest(), "1/0 0/0 0/0");
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, OwnerSharesItWithAUser) {
  {
    RRef<int> mine = cluster_[0].make_rref(5);
    EXPECT_EQ(cluster_[0].rpc_sync<&fetch>("worker2", mine), 5);
    RRef<int> theirs = cluster_[0].rpc_sync<&make_here>("worker1", 6);
    EXPECT_TRUE(theirs.confirmed_by_owner());
    EXPECT_EQ(theirs.to_here(), 6);
    EXPECT_EQ(live_at_rest(), "1/1 1/0 0/0");
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, RR5_UserSharesItWithAnotherUser) {
  {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 3, 4);
    EXPECT_EQ(cluster_[0].rpc_sync<&fetch>("worker2", r), 7);
    EXPECT_EQ(live_at_rest(), "0/1 1/0 0/0");
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, RR5_TheParentMayGoWhileItsChildIsOnTheWay) {
  RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
  Future<void> put;
  {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 3, 4);
    put = shelf.rpc_async<&Shelf::put>(r);
  }
  put.get();
  EXPECT_TRUE(shelf.rpc_sync<&Shelf::all_confirmed>());
  EXPECT_EQ(live_at_rest(), "0/1 1/0 1/1");
  EXPECT_EQ(shelf.rpc_sync<&Shelf::read_all>(), 7);
  shelf.rpc_sync<&Shelf::clear>();
  EXPECT_EQ(live_at_rest(), "0/1 0/0 1/0");
  shelf = {};
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, RR6_AResponseWaitsForConfirmationToo) {
  RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
  shelf.rpc_sync<&Shelf::put>(cluster_[0].remote<&add>("worker1", 1, 1));
  {
    RRef<int> back = shelf.rpc_sync<&Shelf::first>();
    EXPECT_TRUE(back.confirmed_by_owner());
    shelf.rpc_sync<&Shelf::clear>();
    EXPECT_EQ(back.to_here(), 2);
  }
  shelf = {};
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, RR9_AChildMayAskBeforeTheCreationArrives) {
  {
    // The creation leaves to worker1, the call to worker2: the seed decides whether the creation or the request of
    // worker2's fork reaches worker1 first.
    RRef<int> r = cluster_[0].remote<&add>("worker1", 8, 1);
    Future<int> fetched = cluster_[0].rpc_async<&fetch>("worker2", r);
    r = {};
    EXPECT_EQ(fetched.get(), 9);
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, AReferenceGoesRoundAndHome) {
  {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 10, 1);
    const std::vector<std::string> way{"worker2", "worker0", "worker1", "worker2", "worker0", "worker2"};
    EXPECT_EQ(cluster_[0].rpc_sync<&pass_on>("worker2", r, way), 11);
    EXPECT_EQ(cluster_[0].rpc_sync<&echo>("worker2", r).to_here(), 11);
    EXPECT_EQ(cluster_[0].rpc_sync<&echo>("worker1", r).to_here(), 11);
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, ManyReferencesOfManyParentsEnd) {
  std::vector<Future<int>> open;
  for (int i = 0; i < 20; ++i) {
    RRef<int> r = cluster_[0].remote<&add>("worker1", i, 0);
    for (const char* to : {"worker1", "worker2", "worker0"}) open.push_back(cluster_[0].rpc_async<&fetch>(to, r));
  }
  for (std::size_t i = 0; i < open.size(); ++i) EXPECT_EQ(open[i].get(), static_cast<int>(i / 3));
  EXPECT_EQ(live_at_rest(), kNothing);
}

// ---- creating

TEST_P(RRefs, RR7_AReferenceDroppedAtOnceIsNotLeftOver) {
  (void)cluster_[0].remote<&add>("worker1", 1, 2);
  (void)cluster_[0].remote<&add>("worker0", 1, 2);
  (void)cluster_[0].remote<Counter>("worker2", 1);
  (void)cluster_[0].remote<&fails>("worker2", 1);
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, ACreationThatThrowsFailsEveryUse) {
  {
    RRef<int> r = cluster_[0].remote<&fails>("worker1", 1);
    const auto here = r.try_to_here();
    ASSERT_FALSE(here);
    EXPECT_EQ(here.error().code(), Errc::remote_exception);
    EXPECT_NE(here.error().text().find("no luck"), std::string::npos);
    EXPECT_EQ(cluster_[0].try_rpc_sync<&fetch>("worker2", r).error().code(), Errc::remote_exception);

    RRef<Counter> counter = cluster_[0].remote<Counter>("worker1", -1);
    EXPECT_EQ(counter.try_rpc_sync<&Counter::value>().error().code(), Errc::remote_exception);
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, ObjectsLiveAtTheirOwnerAndTheirMethodsRunThere) {
  {
    RRef<Counter> counter = cluster_[0].remote<Counter>("worker1", 10);
    EXPECT_EQ(counter.rpc_sync<&Counter::add>(5), 15);
    EXPECT_EQ(cluster_[0].rpc_sync<&bump>("worker2", counter, 5), 20);
    EXPECT_EQ(cluster_[0].rpc_sync<&bump>("worker1", counter, 5), 25);
    RRef<int> kept = counter.remote<&Counter::add>(100);
    EXPECT_EQ(kept.owner_name(), "worker1");
    EXPECT_EQ(kept.to_here(), 125);
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, ToItselfAWorkerIsOwner) {
  {
    RRef<int> r = cluster_[0].remote<&add>("worker0", 20, 22);
    EXPECT_TRUE(r.is_owner());
    EXPECT_EQ(r.to_here(), 42);
    EXPECT_EQ(*r.local_value(), 42);
    EXPECT_EQ(cluster_[0].rpc_sync<&fetch>("worker0", r), 42);
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, LocalValueElsewhereNamesBothWorkersAndTheIds) {
  RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
  const auto value = r.try_local_value();
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code(), Errc::not_owner);
  const std::string text = value.error().message();
  EXPECT_NE(text.find("worker0"), std::string::npos) << text;
  EXPECT_NE(text.find("worker1"), std::string::npos) << text;
  EXPECT_NE(text.find(to_string(r.id())), std::string::npos) << text;
}

// ---- what a handle says (RR-14)

TEST_P(RRefs, B1_RR14_IsConfirmedWhenTheOwnerHasAnswered) {
  {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
    EXPECT_FALSE(r.confirmed_by_owner()) << "nothing was sent yet";
    EXPECT_EQ(cluster_[0].rrefs().at(0).state, "creating");
    cluster_.run_until_idle();
    EXPECT_TRUE(r.confirmed_by_owner());
    EXPECT_EQ(cluster_[0].rrefs().at(0).state, "confirmed");
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, B1_RR14_IsNotConfirmedWhileItsFunctionRuns) {
  Gate gate;
  {
    RRef<int> r = cluster_[0].remote<&wait_for_gate>("worker1", 1);
    Future<void> created = r.created();
    cluster_.run_until_idle();
    EXPECT_FALSE(r.confirmed_by_owner() || created.ready());
    gate.open();
    cluster_.run_until_idle();
    EXPECT_TRUE(r.confirmed_by_owner() && created.ready());
    EXPECT_TRUE(created.result());
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, B1_RR14_ACreationThatTookTooLongWasNeverConfirmed) {
  for (const char* owner : {"worker1", "worker0"}) {  // H6: for a creation at a peer, and at the creator itself
    Gate gate;
    RRef<int> r = cluster_[0].with({.timeout = std::chrono::seconds(1)}).remote<&wait_for_gate>(owner, 1);
    Future<void> created = r.created();
    EXPECT_FALSE(r.failed());
    cluster_.executor().advance(std::chrono::seconds(2));
    cluster_.run_until_idle();
    ASSERT_TRUE(r.failed()) << owner;
    EXPECT_EQ(r.failed()->code(), Errc::timeout);
    EXPECT_EQ(created.result().error().code(), Errc::timeout);
    EXPECT_EQ(r.try_to_here().error().code(), Errc::timeout);
    EXPECT_EQ(cluster_[0].try_rpc_sync<&fetch>("worker2", r).error().code(), Errc::timeout);
    EXPECT_EQ(r.confirmed_by_owner(), r.is_owner());
    gate.open();
    cluster_.run_until_idle();
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, U16_CALL20_CALL22_CallersOfAllWorkersGetTheOneObject) {
  std::array<std::optional<Result<RRef<Counter>>>, 3> asked;
  for (std::size_t id = 0; id < 3; ++id) {
    cluster_.executor().post(
        [&, id] { asked[id] = cluster_[id].try_get_or_create<Counter>("worker1", "shared", static_cast<int>(id)); });
  }
  cluster_.run_until_idle();
  for (const auto& counter : asked) {
    ASSERT_TRUE(counter && *counter);
    EXPECT_EQ((*counter)->id(), (*asked[0])->id());
    EXPECT_EQ((*counter)->owner_name(), "worker1");
    (*counter)->rpc_sync<&Counter::add>(10);
  }
  const int value = (*asked[2])->rpc_sync<&Counter::value>();
  EXPECT_TRUE(value >= 30 && value < 33) << value << ": made with the arguments of one of them";
  EXPECT_EQ(live_at_rest(), "0/1 1/0 0/1");
  asked.fill(std::nullopt);
  EXPECT_EQ(live_at_rest(), "0/0 1/0 0/0") << "the name keeps it";
  EXPECT_EQ(cluster_[2].get_or_create<Counter>("worker1", "shared", 0).rpc_sync<&Counter::value>(), value);
  EXPECT_EQ(cluster_[2].try_get_or_create<Shelf>("worker1", "shared").error().code(), Errc::wrong_type);
  const Error thrown = cluster_[0].try_get_or_create<Counter>("worker1", "other", -1).error();
  EXPECT_EQ(thrown.code(), Errc::remote_exception);
  EXPECT_EQ(thrown.worker(), "worker1");
  const StopReport stopped = cluster_[1].stop();
  EXPECT_EQ(stopped.in_use, 0U);
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[0].try_get_or_create<Counter>("worker1", "shared", 0).error().code(), Errc::peer_down);
}

TEST_P(RRefs, B1_RR14_CreatedEndsWithTheErrorOfTheFunction) {
  for (const char* owner : {"worker1", "worker0"}) {
    RRef<int> r = cluster_[0].remote<&fails>(owner, 1);
    const auto created = r.created().result();
    ASSERT_FALSE(created) << owner;
    EXPECT_EQ(created.error().code(), Errc::remote_exception);
    EXPECT_EQ(created.error().worker(), owner);
    EXPECT_EQ(r.failed()->code(), Errc::remote_exception);
  }
  EXPECT_EQ(live_at_rest(), kNothing);
}

TEST_P(RRefs, B1_RR14_CreatedNeedsNoHandleAndFetchesNothing) {
  Future<void> created = cluster_[0].remote<Counter>("worker1", 1).created();  // a Counter cannot be sent
  EXPECT_TRUE(created.result());
  EXPECT_TRUE(cluster_[0].make_rref(1).created().result());
  const RRef<int> of_another = cluster_[0].rpc_sync<&make_at>("worker1", "worker2", 7);
  EXPECT_EQ(of_another.created().result().error().code(), Errc::unsupported);
  const RRef<int> of_owner = cluster_[0].rpc_sync<&make_here>("worker1", 7);
  EXPECT_EQ(of_owner.created().result().error().code(), Errc::unsupported);
}

// ---- the live listing

TEST_P(RRefs, TheListingNamesTheActorOfEveryFork) {
  RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
  RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
  shelf.rpc_sync<&Shelf::put>(r);
  cluster_.run_until_idle();
  const auto owned = cluster_[1].rrefs();
  ASSERT_EQ(owned.size(), 1U);
  EXPECT_TRUE(owned[0].is_owner);
  EXPECT_EQ(owned[0].rref, r.id());
  EXPECT_EQ(owned[0].state, "ready");
  EXPECT_NE(owned[0].actor_id, 0U);
  std::vector<ForkId> counted;
  for (const ForkInfo& fork : owned[0].forks) {
    EXPECT_NE(fork.actor_id, 0U);
    counted.push_back(fork.fork);
  }
  std::vector<ForkId> forks;
  for (std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    for (const RRefInfo& info : cluster_[i].rrefs()) {
      if (info.is_owner || info.rref != r.id()) continue;
      EXPECT_EQ(info.state, "confirmed");
      EXPECT_EQ(info.owner, "worker1");
      EXPECT_NE(info.actor_id, 0U);
      forks.push_back(info.fork);
    }
  }
  std::sort(counted.begin(), counted.end());
  std::sort(forks.begin(), forks.end());
  EXPECT_EQ(counted.size(), 2U);
  EXPECT_EQ(counted, forks);
}

class KilledFork : public ::testing::TestWithParam<std::tuple<std::uint64_t, caf::exit_reason>> {
 protected:
  testing::Cluster cluster_{std::get<0>(GetParam()), {"worker0", "worker1", "worker2"}, make_rref_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, KilledFork,
                         ::testing::Combine(::testing::Range<std::uint64_t>(1, 11),
                                            ::testing::Values(caf::exit_reason::kill,
                                                              caf::exit_reason::user_shutdown)));

TEST_P(KilledFork, RR7_EndsExactlyThatFork) {
  {
    RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
    RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
    shelf.rpc_sync<&Shelf::put>(r);
    cluster_.run_until_idle();
    const auto& handle = dynamic_cast<const actors::UserHandle&>(*r.handle());
    caf::anon_send_exit(handle.actor(), std::get<1>(GetParam()));
    cluster_.run_until_idle();

    const auto owned = cluster_[1].rrefs();
    ASSERT_EQ(owned.size(), 1U);
    ASSERT_EQ(owned[0].forks.size(), 1U);
    EXPECT_EQ(owned[0].forks[0].worker, WorkerId{2});
    ASSERT_TRUE(r.failed());
    EXPECT_EQ(shelf.rpc_sync<&Shelf::read_all>(), 3);
    shelf.rpc_sync<&Shelf::clear>();
    cluster_.run_until_idle();
    EXPECT_EQ(cluster_[1].counters().owner_rrefs, 0U);
    EXPECT_EQ(r.try_to_here().error().code(), r.failed()->code());
  }
  cluster_.run_until_idle();
  EXPECT_EQ(live(cluster_, 3), kNothing);
}

// ---- the end of a worker

TEST_P(RRefs, RR13_HandlesOfAWorkerThatHasLeftAreHarmless) {
  RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
  RRef<int> copy = cluster_[0].rpc_sync<&echo>("worker2", r);
  cluster_[0].stop();
  EXPECT_EQ(r.try_to_here().error().code(), Errc::shut_down);
  r = {};
  copy = {};
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 0U);
  EXPECT_EQ(cluster_[2].counters().user_rrefs, 0U);
}

}  // namespace
}  // namespace caftan::test::rref_test
