// T10, SE-35 to SE-37: a caller that does not read makes its callee hold calls back, not grow.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <set>

#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"

namespace caftan::test::reply_room_test {
namespace {

constexpr std::size_t kReply = 64 * 1024;
constexpr std::uint64_t kWindow = 1024 * 1024;
constexpr int kCalls = 200;

int begun = 0;

std::string text() {
  ++begun;
  return std::string(kReply, 'r');
}
at::Tensor tensor() {
  ++begun;
  return at::full({static_cast<std::int64_t>(kReply / 4)}, 1.0F);
}
int back(Worker& worker, int depth) {
  return depth == 0 ? 0 : 1 + worker.rpc_sync<&back>(worker.name() == "a" ? "b" : "a", depth - 1);
}

struct Counter {
  std::string next() {
    ++begun;
    return std::to_string(count++) + std::string(kReply, 'r');
  }
  int count = 0;
};

Registry make_registry() {
  Registry registry;
  registry.add<&text>("text");
  registry.add<&tensor>("tensor");
  registry.add<&back>("back");
  registry.add<Counter>("counter").constructor<>().method<&Counter::next>("next");
  return registry;
}

class ReplyRoom : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override { begun = 0; }
  /// Expects that b, whose replies a does not read, has begun only as many calls as fill the window, and at most two
  /// more.
  void expect_bounded() {
    cluster_.run_until_idle();
    EXPECT_GE(begun, static_cast<int>(kWindow / kReply));
    EXPECT_LE(begun, static_cast<int>(kWindow / kReply) + 2);
  }

  testing::Cluster cluster_{
      GetParam(), {"a", "b"}, make_registry, [](WorkerOptions& options) { options.limits.send_queue = kWindow; }};
  testing::Link& from_b_ = cluster_.network().link("b", "a");
};
INSTANTIATE_TEST_SUITE_P(Seeds, ReplyRoom, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(ReplyRoom, T10_SE35_FunctionsWaitUntilTheirCallerReads) {
  from_b_.set_full(true);
  std::vector<Future<std::string>> replies;
  for (int i = 0; i < kCalls; ++i) replies.push_back(cluster_[0].rpc_async<&text>("b"));
  expect_bounded();
  from_b_.set_full(false);
  for (auto& reply : replies) EXPECT_EQ(std::move(reply).get().size(), kReply);
  EXPECT_EQ(begun, kCalls);
}

TEST_P(ReplyRoom, T10_SE35_TensorsCountToo) {
  from_b_.set_full(true);
  std::vector<Future<at::Tensor>> replies;
  for (int i = 0; i < kCalls; ++i) replies.push_back(cluster_[0].rpc_async<&tensor>("b"));
  cluster_.run_until_idle();
  EXPECT_LE(begun, static_cast<int>(kWindow / kReply) + 3) << "the one that is written does not count";
  from_b_.set_full(false);
  for (auto& reply : replies) EXPECT_EQ(std::move(reply).get().numel(), static_cast<std::int64_t>(kReply / 4));
}

TEST_P(ReplyRoom, T10_SE35_MethodsWaitAndEachRunsOnce) {
  RRef<Counter> counter = cluster_[0].remote<Counter>("b");
  cluster_.run_until_idle();
  from_b_.set_full(true);
  std::vector<Future<std::string>> replies;
  for (int i = 0; i < kCalls; ++i) replies.push_back(counter.rpc_async<&Counter::next>());
  expect_bounded();
  from_b_.set_full(false);
  // The seed decides in which order the calls reach the object, so only the set of replies is compared; the order in
  // which held calls begin is tested in serve_gate_test.cpp (SE-36).
  std::set<std::string> numbers;
  for (auto& reply : replies) {
    const std::string text = std::move(reply).get();
    numbers.insert(text.substr(0, text.find('r')));
  }
  EXPECT_EQ(numbers.size(), static_cast<std::size_t>(kCalls));
}

TEST_P(ReplyRoom, T10_SE37_NestedCallsComeToAnEnd) {
  from_b_.set_full(true);
  std::vector<Future<std::string>> replies;
  for (int i = 0; i < kCalls; ++i) replies.push_back(cluster_[0].rpc_async<&text>("b"));
  cluster_.run_until_idle();
  auto nested = cluster_[0].rpc_async<&back>("b", 5);
  cluster_.run_until_idle();
  from_b_.set_full(false);
  EXPECT_EQ(std::move(nested).get(), 5);
  for (auto& reply : replies) EXPECT_EQ(std::move(reply).get().size(), kReply);
}

TEST_P(ReplyRoom, T10_SE37_ALostCallerFreesWhatWasHeldBack) {
  from_b_.set_full(true);
  for (int i = 0; i < kCalls; ++i) cluster_[0].rpc_async<&text>("b").forget();
  cluster_.run_until_idle();
  cluster_.network().break_off("a", "b");
  cluster_.run_until_idle();
  const int before = begun;
  cluster_[1].stop();
  EXPECT_EQ(begun, before) << "nothing of a lost caller runs later";
}

}  // namespace
}  // namespace caftan::test::reply_room_test
