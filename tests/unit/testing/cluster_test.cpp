// caftan::testing itself: one seed is one order, time moves by hand, and faults end as docs/errors.md says.
#include "caftan/testing/cluster.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "caftan/testing/network.hpp"
#include "caftan/transport/stepped_executor.hpp"

namespace caftan::cluster_test {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using wire::FrameKind;

std::vector<int> arrived;
void note(int number) { arrived.push_back(number); }
int add(int a, int b) { return a + b; }

Registry make_registry() {
  Registry registry;
  registry.add<&note>("note");
  registry.add<&add>("add");
  return registry;
}

/// Returns the order in which ten calls of two workers run at a third one.
std::vector<int> order_of(std::uint64_t seed) {
  arrived.clear();
  Cluster cluster(seed, {"a", "b", "c"}, make_registry);
  std::vector<Future<void>> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(cluster[i % 2 == 0 ? "a" : "b"].rpc_async<&note>("c", i));
  for (auto& call : calls) std::move(call).get();
  return arrived;
}

TEST(Cluster, ASeedRepeatsItsOrderAndOthersHaveOthers) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::vector<int> order = order_of(seed);
    EXPECT_EQ(order.size(), 10U);
    EXPECT_EQ(order_of(seed), order) << "seed " << seed;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 1U);
}

TEST(Cluster, TheClockMovesByHand) {
  Cluster cluster(1, {"a", "b"}, make_registry);
  const base::TimePoint begun = cluster.now();
  EXPECT_EQ(cluster["a"].rpc_sync<&add>("b", 1, 2), 3);
  cluster.run_until_idle();
  EXPECT_EQ(cluster.now(), begun);
  cluster.advance(90s);
  EXPECT_EQ(cluster.now(), begun + 90s);
}

TEST(Cluster, AdvanceRunsEachTimerAtItsTime) {
  Cluster cluster(1, {"a"}, make_registry);
  const base::TimePoint begun = cluster.now();
  std::vector<base::Duration> when;
  cluster.executor().post_at(begun + 1s, [&] {
    when.push_back(cluster.now() - begun);
    cluster.executor().post_at(begun + 3s, [&] { when.push_back(cluster.now() - begun); });
  });
  cluster.executor().post_at(begun + 6s, [&] { when.push_back(cluster.now() - begun); });
  cluster.advance(5s);
  EXPECT_EQ(when, (std::vector<base::Duration>{1s, 3s}));
}

TEST(Cluster, NamesThatAreNotThereAreRefused) {
  Cluster cluster(1, {"a", "b"}, make_registry);
  EXPECT_THROW(cluster["x"], std::logic_error);
  EXPECT_THROW(cluster.network().link("a", "x"), std::logic_error);
  EXPECT_THROW(cluster.network().kill("x"), std::logic_error);
  EXPECT_EQ(cluster["b"].name(), "b");
}

TEST(Network, ALostCallEndsWithTimeoutAndTheNextOneArrives) {
  Cluster cluster(1, {"a", "b"}, make_registry);
  cluster.network().link("a", "b").drop(FrameKind::call, 1);
  const base::TimePoint begun = cluster.now();
  const auto lost = cluster["a"].with({.timeout = 2s}).try_rpc_sync<&add>("b", 1, 2);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Errc::timeout) << lost.error().message();
  EXPECT_GE(cluster.now(), begun + 2s);
  EXPECT_LT(cluster.now(), begun + 3s);
  EXPECT_EQ(cluster["a"].rpc_sync<&add>("b", 1, 2), 3);
  EXPECT_EQ(cluster.network().link("a", "b").count(FrameKind::call), 2U);
}

TEST(Network, ADelayedReplyArrivesThatMuchLater) {
  Cluster cluster(1, {"a", "b"}, make_registry);
  testing::Link& replies = cluster.network().link("b", "a");
  replies.set_delay(300ms);
  const base::TimePoint begun = cluster.now();
  EXPECT_EQ(cluster["a"].rpc_sync<&add>("b", 1, 2), 3);
  EXPECT_EQ(cluster.now(), begun + 300ms);
  replies.set_delay(0s);
  EXPECT_EQ(cluster["a"].rpc_sync<&add>("b", 1, 2), 3);
  EXPECT_EQ(cluster.now(), begun + 300ms);
}

TEST(Network, NoFrameOvertakesADelayedOne) {
  arrived.clear();
  Cluster cluster(1, {"a", "b"}, make_registry);
  testing::Link& calls = cluster.network().link("a", "b");
  calls.set_delay(1s);
  auto first = cluster["a"].rpc_async<&note>("b", 1);
  cluster.run_until_idle();
  calls.set_delay(0s);
  auto second = cluster["a"].rpc_async<&note>("b", 2);
  cluster.run_until_idle();
  EXPECT_TRUE(arrived.empty());
  cluster.advance(1s);
  EXPECT_EQ(arrived.size(), 2U);
  EXPECT_TRUE(first.ready() && second.ready());
}

TEST(Network, AFarewellThatIsDelayedStillArrives) {
  std::vector<Errc> reasons;
  Cluster cluster(1, {"a", "b"}, make_registry, [&reasons](WorkerOptions& options) {
    if (options.name != "a") return;
    options.on_peer_down = [&reasons](const std::string&, const Error& reason) { reasons.push_back(reason.code()); };
  });
  cluster.network().link("b", "a").set_delay(500ms);
  cluster["b"].stop();
  cluster.run_until_idle();
  EXPECT_EQ(reasons, std::vector<Errc>{Errc::shut_down});
}

TEST(Network, AWorkerThatIsCutOffAnswersWhenItIsConnectedAgain) {
  Cluster cluster(1, {"a", "b"}, make_registry);
  cluster.network().cut_off("b");
  auto call = cluster["a"].rpc_async<&add>("b", 1, 2);
  cluster.advance(30s);
  EXPECT_FALSE(call.ready());
  cluster.network().reconnect("b");
  EXPECT_EQ(call.get(), 3);
}

TEST(Network, AWorkerThatIsKilledIsPeerDownAtOnceAndOthersGoOn) {
  std::vector<std::string> lost;
  Cluster cluster(1, {"a", "b", "c"}, make_registry, [&lost](WorkerOptions& options) {
    if (options.name != "a") return;
    options.on_peer_down = [&lost](const std::string& peer, const Error&) { lost.push_back(peer); };
  });
  const base::TimePoint begun = cluster.now();
  cluster.network().link("b", "a").hold();
  auto call = cluster["a"].rpc_async<&add>("b", 1, 2);
  cluster.run_until_idle();
  EXPECT_FALSE(call.ready());
  cluster.network().kill("b");
  EXPECT_EQ(call.result().error().code(), Errc::peer_down);
  EXPECT_EQ(cluster["a"].try_rpc_sync<&add>("b", 1, 2).error().code(), Errc::peer_down);
  EXPECT_EQ(cluster["c"].rpc_sync<&add>("a", 1, 2), 3);
  EXPECT_EQ(lost, std::vector<std::string>{"b"});
  EXPECT_EQ(cluster.now(), begun);
}

}  // namespace
}  // namespace caftan::cluster_test
