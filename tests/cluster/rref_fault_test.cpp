// References when workers crash and connections break: which workers learn of the fault, what keeps the value, and that
// nothing is left.
#include <gtest/gtest.h>

#include <random>

#include <ATen/ops/ones.h>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "counting_hook.hpp"
#include "rref_roles.hpp"
#include "worker/worker_core.hpp"

namespace caftan::test::rref_fault_test {
namespace {

using std::chrono::seconds;

class RRefFaults : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  std::string live_at_rest() {
    cluster_.run_until_idle();
    return live(cluster_, 4);
  }

  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2", "worker3"}, make_rref_registry};
  testing::Network& net_ = cluster_.network();
};
INSTANTIATE_TEST_SUITE_P(Seeds, RRefFaults, ::testing::Range<std::uint64_t>(1, 31));

TEST_P(RRefFaults, RR12_TheCrashOfAUserEndsItsForks) {
  RRef<Counter> counter = cluster_[0].remote<Counter>("worker1", 1);
  counter.rpc_sync<&Counter::add>(1);
  RRef<int> other = cluster_[2].remote<&add>("worker1", 1, 1);
  EXPECT_EQ(other.to_here(), 2);
  net_.kill("worker0");
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 1U);
  EXPECT_EQ(other.to_here(), 2);
  other = {};
  counter = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, RR4_AFrameWithOneBadReferenceRegistersNone) {
  RRef<int> at_user = cluster_[0].remote<&add>("worker1", 1, 2);
  RRef<int> at_owner = cluster_[0].make_rref(7);
  RRef<int> of_another = cluster_[3].make_rref(8);
  for (const RRef<int>& good : {at_user, at_owner}) {
    const auto refused = cluster_[0].try_rpc_sync<&fetch_both>("worker2", good, of_another);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  }
  at_user = {};
  at_owner = {};
  of_another = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, WI19_HandingOnNeedsNoFramesOfItsLinksAndMonitors) {
  RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
  EXPECT_EQ(cluster_[0].rpc_sync<&pass_on>("worker2", r, std::vector<std::string>{"worker3"}), 3);
  r = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
  for (std::size_t i = 0; i < 4; ++i) {
    for (const SentFrames& of : cluster_[i].traffic()) {
      EXPECT_TRUE(of.kind != "link" && of.kind != "unlink" && of.kind != "monitor" && of.kind != "exit") << of.kind;
    }
  }
}

TEST_P(RRefFaults, RR5_AParentKeepsNothingOfChildrenThatHaveAccepted) {
  RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
  RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
  shelf.rpc_sync<&Shelf::clear>();
  cluster_.run_until_idle();
  const auto proxies = [this] {
    const WorkerLife life = actors::WorkerCore::of(cluster_[2]).life();
    return remote::ActorExchange::of(*actors::WorkerCore::of(cluster_[0]).session_with(life)).proxies();
  };
  const std::size_t before = proxies();
  for (int i = 0; i < 5; ++i) shelf.rpc_sync<&Shelf::put>(r);
  cluster_.run_until_idle();
  EXPECT_EQ(proxies(), before) << "the children live on the shelf, their parent has let them go";
  EXPECT_EQ(shelf.rpc_sync<&Shelf::read_all>(), 15);
}

TEST_P(RRefFaults, RR9_AParkedRequestGoesWithItsAsker) {
  // The link holds the creation back, so the fork request of worker2 reaches the owner before the value exists.
  net_.link("worker0", "worker1").hold();
  RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
  Future<int> fetched = cluster_[0].with({.timeout = seconds(2)}).rpc_async<&fetch>("worker2", r);
  cluster_.run_until_idle();
  EXPECT_EQ(actors::WorkerCore::of(cluster_[1]).rref_host().parked().count(), 1U);
  EXPECT_FALSE(fetched.result());  // the clock moves on while this line waits
  cluster_.run_until_idle();
  EXPECT_EQ(actors::WorkerCore::of(cluster_[1]).rref_host().parked().count(), 0U);
  net_.link("worker0", "worker1").release();
  EXPECT_EQ(r.to_here(), 3);
  r = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, RR9_ACreationWhoseTensorsNeverComeFailsWithItsSession) {
  net_.link("worker0", "worker1").set_filter([](const testing::Frame& frame) {
    return frame.header.kind != wire::FrameKind::chunk;
  });
  RRef<int> r = cluster_[0].remote<&weigh>("worker1", at::ones({1000}));
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 1U) << "made when its frame came";
  net_.kill("worker0");
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 0U);
  r = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

/// An actor that is itself the value of a reference.
class ValuesActor final : public caf::event_based_actor {
 public:
  ValuesActor(caf::actor_config& config, bool& ended) : caf::event_based_actor(config), ended_(ended) {}
  void on_exit() override { ended_ = true; }
  caf::behavior make_behavior() override {
    return {[](int) {}};
  }

 private:
  bool& ended_;
};

TEST_P(RRefFaults, K11_CallsOfAnObjectThatEndsWithItsWorkerSayWhyTheWorkerLeaves) {
  actors::WorkerCore& owner = actors::WorkerCore::of(cluster_[1]);
  bool ended = false;
  const auto link_actor = [&owner, &ended](const RRef<Counter>& counter) {
    const caf::actor actor = owner.actor_host().spawn<ValuesActor>(ended);
    owner.rref_host().link_value(counter.handle()->rref(), actor);
    return actor;
  };
  const std::string why = "shut_down: worker1: this worker has left (because: cancelled: the run was interrupted)";
  RRef<Counter> early = cluster_[0].remote<Counter>("worker1", 1);
  RRef<Counter> late = cluster_[0].remote<Counter>("worker1", 1);
  cluster_.run_until_idle();
  const caf::actor first = link_actor(early);
  const caf::actor second = link_actor(late);
  owner.begin_leaving(Error(Errc::cancelled, "the run was interrupted"));
  caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
  cluster_.run_until_idle();
  const auto refused = early.try_rpc_sync<&Counter::add>(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), why);
  // The seed decides whether this call finds the object, finds the object's actor while the actor ends, or finds none.
  Future<int> called = late.rpc_async<&Counter::add>(1);
  caf::anon_send_exit(second, caf::exit_reason::user_shutdown);
  cluster_.run_until_idle();
  const Result<int> answer = called.result();
  EXPECT_EQ(answer ? std::to_string(*answer) : answer.error().message(), answer ? "2" : why);
}

TEST_P(RRefFaults, L2_AValueAndItsActorShareTheirFate) {
  actors::WorkerCore& owner = actors::WorkerCore::of(cluster_[1]);
  for (const bool actor_first : {true, false}) {
    bool ended = false;
    RRef<int> r = cluster_[0].rpc_sync<&make_here>("worker1", 5);
    caf::actor actor = owner.actor_host().spawn<ValuesActor>(ended);
    owner.rref_host().link_value(r.handle()->rref(), actor);
    cluster_.run_until_idle();
    EXPECT_EQ(r.to_here(), 5);
    EXPECT_FALSE(ended);
    if (actor_first) {
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
      cluster_.run_until_idle();
      EXPECT_EQ(r.try_to_here().error().code(), Errc::rref_deleted);
    }
    r = {};
    actor = nullptr;
    EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
    EXPECT_TRUE(ended);
  }
}

TEST_P(RRefFaults, RR10_TheCrashOfTheOwnerIsPeerDownForAllForGood) {
  RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
  RRef<int> r = cluster_[0].remote<&add>("worker1", 1, 2);
  shelf.rpc_sync<&Shelf::put>(r);
  net_.kill("worker1");
  cluster_.run_until_idle();
  EXPECT_EQ(r.try_to_here().error().code(), Errc::peer_down);
  ASSERT_TRUE(r.failed());
  EXPECT_EQ(r.failed()->code(), Errc::peer_down);
  EXPECT_FALSE(r.confirmed_by_owner());
  const auto read = shelf.try_rpc_sync<&Shelf::read_all>();
  ASSERT_FALSE(read);
  EXPECT_EQ(cluster_[0].try_rpc_sync<&fetch>("worker2", r).error().code(), Errc::peer_down);
  r = {};
  shelf = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, RR10_TheCrashOfTheParentLeavesTheChildToTheOwner) {
  RRef<int> r = cluster_[2].remote<&add>("worker1", 2, 3);
  RRef<Shelf> parent = cluster_[2].remote<Shelf>("worker0");
  RRef<Shelf> child = cluster_[2].remote<Shelf>("worker3");
  parent.rpc_sync<&Shelf::put>(r);
  // The link holds the child's request to the owner back until the child's parent has crashed.
  net_.link("worker3", "worker1").hold();
  Future<void> given = parent.rpc_async<&Shelf::give_first_to>(child);
  cluster_.run_until_idle();
  net_.kill("worker0");
  cluster_.run_until_idle();
  EXPECT_EQ(given.result().error().code(), Errc::peer_down);
  net_.link("worker3", "worker1").release();
  cluster_.run_until_idle();
  EXPECT_EQ(child.rpc_sync<&Shelf::read_all>(), 5);
  child = {};
  parent = {};
  r = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, RR10_AChildWhoseValueWentWithItsParentIsRefused) {
  RRef<Shelf> shelf = cluster_[2].remote<Shelf>("worker3");
  cluster_.run_until_idle();
  net_.link("worker2", "worker1").hold();
  RRef<int> r = cluster_[0].remote<&add>("worker1", 2, 3);
  EXPECT_EQ(r.to_here(), 5);
  Future<int> fetched = cluster_[0].rpc_async<&fetch>("worker2", r);
  cluster_.run_until_idle();
  net_.break_off("worker0", "worker1");
  cluster_.run_until_idle();
  net_.link("worker2", "worker1").release();
  EXPECT_EQ(fetched.result().error().code(), Errc::rref_deleted);
  r = {};
  shelf = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, RR11_AChildThatCannotReachItsOwnerNamesIt) {
  net_.break_off("worker2", "worker1");
  cluster_.run_until_idle();
  RRef<Shelf> shelf = cluster_[0].remote<Shelf>("worker2");
  RRef<int> r = cluster_[0].remote<&add>("worker1", 2, 3);
  const auto put = shelf.with({.timeout = seconds(0)}).try_rpc_sync<&Shelf::put>(r);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), Errc::peer_unreachable);
  EXPECT_NE(put.error().message().find("worker1"), std::string::npos) << put.error().message();
  EXPECT_EQ(r.to_here(), 5);
  r = {};
  shelf = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, WI10_RR4_WhatTheLaneDoesNotAcceptIsNotRegistered) {
  RRef<int> mine = cluster_[0].make_rref(4);
  RRef<int> theirs = cluster_[0].remote<&add>("worker1", 2, 3);
  cluster_.run_until_idle();
  net_.break_off("worker0", "worker2");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(cluster_[0].try_rpc_sync<&fetch>("worker2", mine));
    EXPECT_FALSE(cluster_[0].try_rpc_sync<&fetch>("worker2", theirs));
  }
  mine = {};
  theirs = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

TEST_P(RRefFaults, RR3_ALateOrCancelledCallLeavesNoReference) {
  RRef<int> r = cluster_[0].remote<&add>("worker1", 2, 3);
  RRef<Counter> counter = cluster_[0].remote<Counter>("worker1", 1);
  net_.link("worker0", "worker2").hold();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster_[0].with({.timeout = seconds(1)}).try_rpc_sync<&fetch>("worker2", r).error().code(),
              Errc::timeout);
  }
  net_.link("worker0", "worker2").release();
  Future<int> cancelled = cluster_[0].rpc_async<&fetch>("worker2", r);
  cancelled.cancel();
  r = {};
  counter = {};
  EXPECT_EQ(live_at_rest(), "0/0 0/0 0/0 0/0");
}

// ---- random histories

/// Lets four workers make, pass, use and drop references while connections break, then looks whether everything ended.
class RandomHistory : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  static std::string name(std::size_t worker) { return "worker" + std::to_string(worker); }

  void act() {
    const std::size_t who = below(4);
    const std::string to = name(below(4));
    switch (below(8)) {
      case 0:
        keep(who, cluster_[who].try_remote<&add>(to, 1, 2));
        break;
      case 1:
        keep(who, Result<RRef<int>>(cluster_[who].make_rref(7)));
        break;
      case 2:
        keep(who, cluster_[who].try_rpc_sync<&make_at>(to, name(below(4)), 3));
        break;
      case 3:
        if (auto* r = any(who)) open_.push_back(cluster_[who].rpc_async<&fetch>(to, *r));
        break;
      case 4:
        if (auto* r = any(who)) keep(who, cluster_[who].try_rpc_sync<&echo>(to, *r));
        break;
      case 5:
        if (auto* r = any(who)) {
          open_.push_back(cluster_[who].rpc_async<&pass_on>(to, *r, std::vector{name(below(4)), name(below(4))}));
        }
        break;
      case 6:
        if (auto* r = any(who)) {
          std::swap(*r, held_[who].back());
          held_[who].pop_back();
        }
        break;
      default:
        for (std::size_t steps = below(200); steps > 0 && cluster_.executor().step(); --steps) {
        }
    }
  }
  void keep(std::size_t who, Result<RRef<int>> made) {
    if (made) held_[who].push_back(*std::move(made));
  }
  RRef<int>* any(std::size_t who) { return held_[who].empty() ? nullptr : &held_[who][below(held_[who].size())]; }
  void break_one() {
    const std::size_t one = below(4);
    const std::size_t other = (one + 1 + below(3)) % 4;
    if (below(2) == 0) {
      net_.break_off(name(one), name(other));
    } else {
      net_.cut(name(one), name(other));
    }
  }

  std::mt19937_64 random_{GetParam()};
  std::vector<std::shared_ptr<CountingHook>> hooks_;
  testing::Cluster cluster_{
      GetParam(), {"worker0", "worker1", "worker2", "worker3"}, make_rref_registry, [this](WorkerOptions& options) {
        options.rpc_timeout = seconds(5);
        hooks_.push_back(std::make_shared<CountingHook>());
        options.hook = hooks_.back();
      }};
  testing::Network& net_ = cluster_.network();
  std::array<std::vector<RRef<int>>, 4> held_;
  std::vector<Future<int>> open_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomHistory, ::testing::Range<std::uint64_t>(1, 101));

TEST_P(RandomHistory, CALL1_RR7_RR8_EverythingEndsAndNothingIsLeft) {
  const std::size_t faults = GetParam() % 4;  // a quarter of the histories has no fault
  std::vector<std::size_t> when;
  for (std::size_t i = 0; i < faults; ++i) when.push_back(below(60));
  for (std::size_t i = 0; i < 60; ++i) {
    if (std::find(when.begin(), when.end(), i) != when.end()) break_one();
    act();
  }
  for (auto& future : open_) {
    const auto result = future.result();
    EXPECT_TRUE(result || faults > 0) << result.error().message();
  }
  cluster_.run_until_idle();
  // What was confirmed and reports no error has a value that can be fetched (the oracle of RR-7).
  for (auto& held : held_) {
    for (auto& r : held) {
      if (r.failed()) continue;
      const auto value = r.try_to_here();
      EXPECT_TRUE(value) << value.error().message();
    }
    held.clear();
  }
  open_.clear();
  cluster_.run_until_idle();
  cluster_.executor().advance(seconds(6));  // references that could not be confirmed in this time are refused
  EXPECT_EQ(live(cluster_, 4), "0/0 0/0 0/0 0/0");
  for (const auto& hook : hooks_) EXPECT_TRUE(hook->all_ended_once());
}

}  // namespace
}  // namespace caftan::test::rref_fault_test
