// More bytes than the windows hold, over real sockets: nothing stalls, nothing is lost (BI-7).
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "caftan/tensor/operators.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "channel_kind.hpp"
#include "folder.hpp"
#include "rref_roles.hpp"

namespace caftan::test::backpressure_test {
namespace {

at::Tensor echo_tensor(const at::Tensor& tensor) { return tensor; }

/// A call of `wait_at_gate`: `reached` shows the test that the call has begun, `answer` is the reply that the test
/// gives.
struct Gate {
  std::promise<void> reached;
  Promise<int> answer;
};
Gate* gate = nullptr;
Future<int> wait_at_gate(const at::Tensor& tensor) {
  Future<int> later = gate->answer.future();
  gate->reached.set_value();
  return later.then([size = static_cast<int>(tensor.numel())](Result<int> extra) { return size + *extra; });
}

Registry make_registry() {
  Registry registry = make_rref_registry();
  registry.add<&echo_tensor>("echo_tensor");
  registry.add<&wait_at_gate>("wait_at_gate");
  return registry;
}

class Backpressure : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) {
      WorkerOptions options;
      options.name = name;
      options.world = {{"a", test::path_scheme() + (folder_ / "a")}, {"b", ""}};
      options.secret = "shared by this test";
      options.limits.send_queue = std::uint64_t{1} << 20;
      options.executor =
          std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = GetParam()});
      workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }

  Folder folder_;
  std::vector<std::unique_ptr<Worker>> workers_;
  const at::Tensor big_ = at::arange(std::int64_t{8} << 20);  // 64 MiB
};
INSTANTIATE_TEST_SUITE_P(Runners, Backpressure, ::testing::Values(1U, 2U));

TEST_P(Backpressure, BI7_BothSidesEchoMoreThanTheirWindows) {
  Future<at::Tensor> forth = workers_[0]->rpc_async<&echo_tensor>("b", big_);
  Future<at::Tensor> back = workers_[1]->rpc_async<&echo_tensor>("a", big_);
  EXPECT_TRUE(forth.get().equal(big_));
  EXPECT_TRUE(back.get().equal(big_));
}

TEST_P(Backpressure, BI7_M5_AFullWindowIsOverloadedForWhoDoesNotWaitAndWaitingForTheOthers) {
  Gate held;
  gate = &held;
  Future<int> busy = workers_[0]->rpc_async<&wait_at_gate>("b", big_);
  held.reached.get_future().get();
  // The busy call keeps its bytes of the window until its reply has come, so the window is full.
  const auto refused =
      workers_[0]->with({.timeout = std::nullopt, .fail_when_full = true}).try_rpc_sync<&add>("b", 1, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::overloaded);
  std::atomic<bool> opened{false};
  std::thread other([&] {
    const auto waited = workers_[0]->try_rpc_sync<&add>("b", 1, 2);
    EXPECT_TRUE(opened) << "a call that had no room was sent";
    ASSERT_TRUE(waited);
    EXPECT_EQ(*waited, 3);
  });
  opened = true;
  held.answer.set(1);
  EXPECT_EQ(busy.get(), static_cast<int>(big_.numel()) + 1);
  other.join();
}

TEST_P(Backpressure, BI7_NoDownAndNoReplyIsLostBehindTensors) {
  std::vector<RRef<int>> made;
  for (int i = 0; i < 200; ++i) made.push_back(workers_[1]->remote<&add>("a", i, 0));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(made[static_cast<std::size_t>(i)].to_here(), i);
  Future<at::Tensor> forth = workers_[0]->rpc_async<&echo_tensor>("b", big_);
  Future<at::Tensor> back = workers_[1]->rpc_async<&echo_tensor>("a", big_);
  made.clear();
  EXPECT_TRUE(forth.get().equal(big_));
  EXPECT_TRUE(back.get().equal(big_));
  // The messages that end references may still be under way. The reply to each call comes behind them.
  for (int i = 0; i < 10'000 && workers_[0]->counters().owner_rrefs > 0; ++i) workers_[1]->rpc_sync<&add>("a", 1, 2);
  EXPECT_EQ(workers_[0]->counters().owner_rrefs, 0U);
  EXPECT_EQ(workers_[1]->counters().user_rrefs, 0U);
  EXPECT_EQ(workers_[0]->counters().requests_in_flight, 0U);
}

}  // namespace
}  // namespace caftan::test::backpressure_test
