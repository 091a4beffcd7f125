// What one call asks libc for, of caller and callee together: memory, locks and the time (docs/performance.md,
// "Counted"). Both workers live in this process, each with an executor of its own, and are joined by a Unix socket. Of
// many rounds of calls the one that took least counts: what timers and the backstop add is no part of a call.
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/tensor/tensor.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "counted_functions.hpp"
#include "folder.hpp"

namespace caftan::call_counts_test {
namespace {

Tensor echo(Tensor tensor) { return tensor; }
int echo_int(int value) { return value; }

class Echoer {
 public:
  Tensor echo(Tensor tensor) { return tensor; }
};

/// @param has_rules  peers may do what rules allow, which is everything (docs/protocols/permissions.md)
Registry make_registry(bool has_rules) {
  Registry registry;
  if (has_rules) registry.permit({.others = {.uses = {.allowed = true}}});
  registry.add<&echo>("echo");
  registry.add<&echo_int>("echo_int");
  registry.add<Echoer>("echoer").constructor<>().method<&Echoer::echo>("echo");
  return registry;
}

/// Upper ends of what one call takes.
struct Limits {
  double allocations;
  double locks;
  double clocks;
};

class CallCounts : public ::testing::Test {
 protected:
  explicit CallCounts(bool has_rules = false) {
    test::count_this_thread();
    for (const char* name : {"caller", "callee"}) {
      WorkerOptions options;
      options.name = name;
      options.world = {{"caller", "unix:" + (folder_ / "caller")}, {"callee", "unix:" + (folder_ / "callee")}};
      options.secret = "shared by this test";
      options.executor = std::make_shared<transport::ThreadedExecutor>(
          transport::ThreadedExecutor::Options{.on_thread_start = &test::count_this_thread});
      workers_.push_back(Worker::launch(std::move(options), make_registry(has_rules)).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }

  Worker& caller() { return *workers_[0]; }

  void expect_at_most(const Limits& limits, const std::function<void()>& call) {
    constexpr int kRounds = 40;
    constexpr int kCallsInARound = 50;
    constexpr double kNone = std::numeric_limits<double>::infinity();
    Limits least{kNone, kNone, kNone};
    for (int i = 0; i < 2 * kCallsInARound; ++i) call();
    for (int round = 0; round < kRounds; ++round) {
      const test::FunctionCounts before = test::function_counts();
      for (int i = 0; i < kCallsInARound; ++i) call();
      const test::FunctionCounts taken = test::function_counts() - before;
      least.allocations = std::min(least.allocations, static_cast<double>(taken.allocations) / kCallsInARound);
      least.locks = std::min(least.locks, static_cast<double>(taken.locks) / kCallsInARound);
      least.clocks = std::min(least.clocks, static_cast<double>(taken.clocks) / kCallsInARound);
    }
    RecordProperty("allocations", std::to_string(least.allocations));
    RecordProperty("locks", std::to_string(least.locks));
    RecordProperty("clocks", std::to_string(least.clocks));
    EXPECT_LE(least.allocations, limits.allocations) << stacks_of(test::Counted::allocations, call);
    EXPECT_LE(least.locks, limits.locks) << stacks_of(test::Counted::locks, call);
    EXPECT_LE(least.clocks, limits.clocks) << stacks_of(test::Counted::clocks, call);
  }

 private:
  static std::string stacks_of(test::Counted which, const std::function<void()>& call) {
    test::record_stacks(which);
    call();
    test::record_stacks(test::Counted::none);
    return "where one call takes them:\n" + test::recorded_stacks();
  }

  const test::Folder folder_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

class PermittedCallCounts : public CallCounts {
 protected:
  PermittedCallCounts() : CallCounts(true) {}
};

TEST(CountedFunctions, AreCounted) {
  test::count_this_thread();
  const test::FunctionCounts before = test::function_counts();
  std::mutex mutex;
  std::vector<int> memory;
  mutex.lock();
  memory.reserve(100);
  const auto now = std::chrono::steady_clock::now();
  mutex.unlock();
  const test::FunctionCounts counted = test::function_counts() - before;
  EXPECT_GT(now.time_since_epoch().count(), 0);
  EXPECT_EQ(counted.allocations, 1U);
  EXPECT_EQ(counted.locks, 1U);
  EXPECT_EQ(counted.clocks, 1U);
}

TEST_F(CallCounts, OfACallWithAnInt) {
  expect_at_most({.allocations = 4.1, .locks = 21, .clocks = 4.1}, [&] { caller().rpc_sync<&echo_int>("callee", 1); });
}

TEST_F(CallCounts, OfACallWithFourFloats) {
  const Tensor tensor = at::ones({4});
  expect_at_most({.allocations = 10.1, .locks = 23, .clocks = 4.1},
                 [&] { caller().rpc_sync<&echo>("callee", tensor); });
}

TEST_F(CallCounts, OfAMethodWithFourFloats) {
  const Tensor tensor = at::ones({4});
  const RRef<Echoer> object = caller().remote<Echoer>("callee");
  expect_at_most({.allocations = 16.5, .locks = 40, .clocks = 6.1}, [&] { object.rpc_sync<&Echoer::echo>(tensor); });
}

TEST_F(PermittedCallCounts, PM10_OfACallWithAnIntAreThoseWithoutRules) {
  expect_at_most({.allocations = 4.1, .locks = 21, .clocks = 4.1}, [&] { caller().rpc_sync<&echo_int>("callee", 1); });
}

TEST_F(PermittedCallCounts, PM10_OfAMethodWithFourFloatsAreThoseWithoutRules) {
  const Tensor tensor = at::ones({4});
  const RRef<Echoer> object = caller().remote<Echoer>("callee");
  expect_at_most({.allocations = 16.5, .locks = 40, .clocks = 6.1}, [&] { object.rpc_sync<&Echoer::echo>(tensor); });
}

TEST_F(CallCounts, OfOneHopForwardAndBackward) {
  const Tensor leaf = at::ones({4}).requires_grad_();
  expect_at_most({.allocations = 440, .locks = 370, .clocks = 30}, [&] {
    const autograd::Context context(caller());
    context.backward({caller().rpc_sync<&echo>("callee", leaf).sum()});
    EXPECT_TRUE(context.gradients().of(leaf).defined());
  });
}

}  // namespace
}  // namespace caftan::call_counts_test
