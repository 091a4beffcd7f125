// The call hook: each request meets exactly one end, whatever happens to it (CALL-3).
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "counting_hook.hpp"
#include "rref_roles.hpp"

namespace caftan::test::hook_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Hooks : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr CallOptions kShort{.timeout = milliseconds(200)};

  CountingHook& hook(std::size_t worker) { return *hooks_[worker]; }
  CountingHook::Counts caller() { return hook(0).counts(); }
  void expect_all_ended() {
    cluster_.run_until_idle();
    for (const auto& hook : hooks_) EXPECT_TRUE(hook->all_ended_once());
  }

  std::vector<std::shared_ptr<CountingHook>> hooks_;
  testing::Cluster cluster_{
      GetParam(), {"worker0", "worker1", "worker2"}, make_rref_registry, [this](WorkerOptions& options) {
        options.limits.send_queue = 64 * 1024;
        hooks_.push_back(std::make_shared<CountingHook>());
        options.hook = hooks_.back();
      }};
  testing::Network& net_ = cluster_.network();
};
INSTANTIATE_TEST_SUITE_P(Seeds, Hooks, ::testing::Range<std::uint64_t>(1, 11));

TEST_P(Hooks, CALL3_EveryKindOfRequestIsSeenOnceOnBothSides) {
  cluster_[0].rpc_sync<&add>("worker1", 1, 2);
  cluster_[0].rpc_sync<&add>("worker0", 1, 2);
  RRef<Counter> counter = cluster_[0].remote<Counter>("worker1", 1);
  counter.rpc_sync<&Counter::add>(1);
  RRef<int> value = counter.remote<&Counter::value>();
  value.to_here();
  cluster_[0].rpc_op("worker1", "aten::add.Tensor", at::ones({2}), at::ones({2}));
  cluster_.run_until_idle();
  EXPECT_EQ(caller().requests, 7);
  EXPECT_EQ(caller().replies_received, 7);
  EXPECT_EQ(caller().received, 1);
  EXPECT_EQ(hook(1).counts().received, 6);
  // A creation packs no result: its value stays at the callee.
  EXPECT_EQ(hook(1).counts().replies + caller().replies, 5);
  expect_all_ended();
}

TEST_P(Hooks, CALL3_ARemoteErrorIsADroppedReply) {
  hook(1).refuse(Error(Errc::unsupported, "not today"));
  EXPECT_EQ(cluster_[0].try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::unsupported);
  EXPECT_EQ(cluster_[0].try_rpc_sync<&fails>("worker2", 1).error().code(), Errc::remote_exception);
  EXPECT_EQ(caller().replies_dropped, 2);
  expect_all_ended();
}

TEST_P(Hooks, CALL3_WithoutAConnectionNothingIsSent) {
  net_.break_off("worker0", "worker1");
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[0].try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::peer_down);
  EXPECT_FALSE(cluster_[0].try_remote<&add>("worker1", 1, 2));
  EXPECT_EQ(caller().unsent, 2);
  EXPECT_EQ(caller().peers_down, 1);
  EXPECT_EQ(hook(1).counts().peers_down, 1);
  EXPECT_EQ(hook(2).counts().peers_down, 0);
  expect_all_ended();
}

TEST_P(Hooks, CALL3_AFullWindowIsOverloadedAndUnsent) {
  net_.link("worker1", "worker0").hold();
  std::vector<Future<at::Tensor>> open;
  const auto busy = cluster_[0].with({.timeout = std::nullopt, .fail_when_full = true});
  for (int i = 0; i < 8; ++i) {
    open.push_back(
        busy.rpc_op_async("worker1", "aten::neg", at::ones({2048})).then([](Result<rpc::OperatorValues> all) {
          return rpc::single_tensor(std::move(all)).value();
        }));
  }
  cluster_.run_until_idle();
  EXPECT_GT(caller().unsent, 0);
  EXPECT_LT(caller().unsent, 8);
  net_.link("worker1", "worker0").release();
  int failed = 0;
  for (auto& future : open) failed += future.result() ? 0 : 1;
  EXPECT_EQ(failed, caller().unsent);
  EXPECT_EQ(caller().replies_received, 8 - failed);
  expect_all_ended();
}

TEST_P(Hooks, CALL3_ALateReplyIsNoSecondEnd) {
  net_.link("worker1", "worker0").hold();
  EXPECT_EQ(cluster_[0].with(kShort).try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::timeout);
  EXPECT_EQ(caller().replies_dropped, 1);
  net_.link("worker1", "worker0").release();
  expect_all_ended();
  EXPECT_EQ(caller().replies_received, 0);
  EXPECT_EQ(cluster_[0].rpc_sync<&add>("worker1", 1, 2), 3);
}

TEST_P(Hooks, CALL3_CancellingIsAnEnd) {
  net_.link("worker1", "worker0").hold();
  Future<int> call = cluster_[0].rpc_async<&add>("worker1", 1, 2);
  cluster_.run_until_idle();
  EXPECT_TRUE(call.cancel());
  EXPECT_EQ(call.result().error().code(), Errc::cancelled);
  net_.link("worker1", "worker0").release();
  expect_all_ended();
  EXPECT_EQ(caller().replies_dropped, 1);
}

TEST_P(Hooks, CALL3_TheLossOfThePeerEndsWhatIsOpen) {
  net_.link("worker1", "worker0").hold();
  Future<int> call = cluster_[0].rpc_async<&add>("worker1", 1, 2);
  RRef<int> made = cluster_[0].remote<&add>("worker1", 1, 2);
  Future<int> fetched = made.fetch();
  cluster_.run_until_idle();
  net_.break_off("worker0", "worker1");
  EXPECT_EQ(call.result().error().code(), Errc::peer_down);
  EXPECT_EQ(fetched.result().error().code(), Errc::peer_down);
  cluster_.run_until_idle();
  EXPECT_EQ(caller().replies_dropped, 3);
  EXPECT_EQ(caller().peers_down, 1);
  expect_all_ended();
}

TEST_P(Hooks, CALL3_AReferenceThatCannotBeConfirmedDropsTheReply) {
  // worker0 asks worker2 for a reference whose owner it cannot reach (RR-11).
  net_.break_off("worker0", "worker1");
  cluster_.run_until_idle();
  const auto made = cluster_[0].with(kShort).try_rpc_sync<&make_at>("worker2", "worker1", 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::peer_unreachable);
  EXPECT_NE(made.error().message().find("worker1"), std::string::npos);
  EXPECT_EQ(caller().replies_dropped, 1);
  expect_all_ended();
}

TEST_P(Hooks, CALL3_StoppingEndsWhatIsOpen) {
  net_.link("worker1", "worker0").hold();
  Future<int> call = cluster_[0].rpc_async<&add>("worker1", 1, 2);
  cluster_.run_until_idle();
  cluster_[0].stop();
  EXPECT_FALSE(call.result());
  cluster_.run_until_idle();
  EXPECT_EQ(caller().replies_dropped, 1);
  expect_all_ended();
}

}  // namespace
}  // namespace caftan::test::hook_test
