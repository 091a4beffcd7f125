// Group calls over sessions: encoding once, tensors, dead members, time, autograd.
#include "caftan/rpc/group.hpp"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <functional>
#include <string>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "rref_roles.hpp"

namespace caftan::test::group_test {
namespace {

using namespace std::chrono_literals;

at::Tensor scale(const at::Tensor& tensor, double by) { return tensor * by; }
std::string name_of(Worker& worker) { return worker.name(); }
Registry make_registry() {
  Registry registry = make_rref_registry();
  registry.add<&scale>("scale");
  registry.add<&name_of>("name_of");
  return registry;
}

class Groups : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Worker& worker() { return cluster_[0]; }
  WorkerGroup three() { return worker().group({"worker1", "worker2", "worker3"}); }

  Gate gate_;
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2", "worker3"}, make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Groups, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(Groups, OneCallGoesToEachMemberAndToThisWorkerToo) {
  const WorkerGroup all = worker().group({"worker0", "worker1", "worker2", "worker3"});
  EXPECT_EQ(all.rpc_all<&name_of>().get(), (std::vector<std::string>{"worker0", "worker1", "worker2", "worker3"}));
}

TEST_P(Groups, LargeAndSmallTensorsReachAllMembers) {
  for (const std::int64_t size : {3, 100'000}) {
    const at::Tensor tensor = at::full({size}, 2.0);
    const std::vector<at::Tensor> scaled = three().rpc_all<&scale>(tensor, 3.0).get();
    ASSERT_EQ(scaled.size(), 3U);
    for (const at::Tensor& one : scaled) EXPECT_TRUE(one.equal(at::full({size}, 6.0)));
    // A tensor that is not contiguous is made so once, for all members.
    const at::Tensor wide = at::full({size, 2}, 2.0).select(1, 0);
    EXPECT_TRUE(three().rpc_all<&scale>(wide, 0.5).get()[2].equal(at::ones({size})));
  }
}

TEST_P(Groups, ReferencesInArgumentsReachAllMembers) {
  const RRef<int> value = worker().make_rref(7);
  EXPECT_EQ(three().rpc_all<&fetch>(value).get(), (std::vector<int>{7, 7, 7}));
}

TEST_P(Groups, MethodsOfRemoteObjectsAndScatterAndReduce) {
  std::vector<RRef<Counter>> counters;
  for (int i = 1; i <= 3; ++i) counters.push_back(worker().remote<Counter>("worker" + std::to_string(i), 10 * i));
  const Group<Counter> group(counters);
  EXPECT_EQ(group.rpc_all<&Counter::add>(1).get(), (std::vector<int>{11, 21, 31}));
  EXPECT_EQ(group.scatter<&Counter::add>(std::vector<int>{1, 2, 3}).get(), (std::vector<int>{12, 23, 34}));
  EXPECT_EQ(group.reduce<&Counter::value>(std::plus<>()).get(), 69);
  EXPECT_EQ((group.all_reduce<&Counter::value, &Counter::add>(std::plus<>()).get()), 69);
  EXPECT_EQ(group.rpc_all<&Counter::value>().get(), (std::vector<int>{81, 92, 103}));
}

TEST_P(Groups, AMemberThatDiesDuringTheCallIsNamedAtOnce) {
  auto call = three().rpc_all<&wait_for_gate>(1);
  cluster_.run_until_idle();
  EXPECT_FALSE(call.ready());
  cluster_.network().kill("worker2");
  cluster_.run_until_idle();
  ASSERT_TRUE(call.ready());
  EXPECT_EQ(call.result().error().code(), Errc::peer_down);
  EXPECT_EQ(call.result().error().worker(), "worker2");
}

TEST_P(Groups, AMemberThatIsKnownToBeDeadEndsTheCallBeforeItAndLaterOnesGetIt) {
  cluster_.network().kill("worker1");
  cluster_.run_until_idle();
  const std::size_t before = cluster_.network().count(wire::FrameKind::call);
  const auto failed = three().rpc_all<&name_of>().result();
  EXPECT_EQ(failed.error().code(), Errc::peer_down);
  EXPECT_EQ(failed.error().worker(), "worker1");
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_.network().count(wire::FrameKind::call), before);
  const auto results = three().rpc_all_results<&name_of>().get();
  EXPECT_EQ(results[0].error().worker(), "worker1");
  EXPECT_EQ(*results[1], "worker2");
  EXPECT_EQ(*results[2], "worker3");
}

TEST_P(Groups, AMemberWithoutAReplyIsNamedAtTheTimeout) {
  cluster_.network().link("worker0", "worker3").drop(wire::FrameKind::call, 1);
  const auto late = three().with({.timeout = 2s}).rpc_all<&name_of>().result();
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_EQ(late.error().worker(), "worker3");
}

TEST_P(Groups, CancellingSendsACancelToEachMember) {
  auto call = three().rpc_all<&wait_for_gate>(1);
  cluster_.run_until_idle();
  EXPECT_TRUE(call.cancel());
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_.network().count(wire::FrameKind::cancel), 3U);
  EXPECT_EQ(worker().counters().requests_in_flight, 0U);
}

TEST_P(Groups, AutogradRecordsAGroupCallAsTheSingleCalls) {
  at::Tensor x = at::ones({4});
  x.set_requires_grad(true);
  autograd::Context context(worker());
  const std::vector<at::Tensor> scaled = three().rpc_all<&scale>(x, 2.0).get();
  context.backward((scaled[0] + scaled[1] + scaled[2]).sum());
  EXPECT_TRUE(context.gradients().of(x).equal(at::full({4}, 6.0)));
}

}  // namespace
}  // namespace caftan::test::group_test
