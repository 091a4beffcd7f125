// Group 06 of PyTorch's own suite: functions that return a Future, so that no runner of the callee waits for it. Row
// 06.02, a function that should return a future and does not, is the compiler's: there is no mark beside the type.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/caftan.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test::async_rows_test {
namespace {

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

Future<at::Tensor> throw_first() { throw std::runtime_error("expected"); }

Future<at::Tensor> add_at(Worker& worker, const std::string& to, const at::Tensor& a, const at::Tensor& b) {
  return worker.rpc_async<&add>(to, a, b);
}

Future<at::Tensor> add_with_promise(Worker& worker, const std::string& to, const at::Tensor& a, const at::Tensor& b) {
  Promise<at::Tensor> promise;
  Future<at::Tensor> future = promise.future();
  worker.rpc_async<&add>(to, a, b)
      .then([promise = std::move(promise)](Result<at::Tensor> sum) mutable { promise.set(std::move(sum)); })
      .forget();
  return future;
}

Future<at::Tensor> add_chained(Worker& worker, const std::string& to, const at::Tensor& a, const at::Tensor& b) {
  return worker.rpc_async<&add>(to, a, b).then([b](Result<at::Tensor> sum) { return sum.value() + b; });
}

/// Asks the worker `to`, which asks this worker for a sum, and adds `b` to the reply.
Future<at::Tensor> add_nested(Worker& worker, const std::string& to, const at::Tensor& a, const at::Tensor& b) {
  return worker.rpc_async<&add_at>(to, worker.name(), a, b).then([b](Result<at::Tensor> sum) {
    return sum.value() + b;
  });
}

Future<at::Tensor> add_in_steps(Worker& worker, const std::string& to, const at::Tensor& a, int steps) {
  Future<at::Tensor> sum = worker.rpc_async<&add>(to, a, at::ones({2}));
  for (int step = 0; step < steps; ++step) {
    sum = std::move(sum).then([](Result<at::Tensor> so_far) { return so_far.value() + 1; });
  }
  return sum;
}

/// Makes `count` calls at once, and completes its future when the last continuation has run.
Future<at::Tensor> add_fanned_out(Worker& worker, const std::string& to, const at::Tensor& a, int count) {
  struct Sum {
    base::Mutex mutex;
    at::Tensor value CAFTAN_GUARDED_BY(mutex);
    int left CAFTAN_GUARDED_BY(mutex) = 0;
    Promise<at::Tensor> promise CAFTAN_GUARDED_BY(mutex);
  };
  const auto sum = std::make_shared<Sum>();
  Future<at::Tensor> future = [&] {
    const base::LockGuard lock(sum->mutex);
    sum->value = at::full({2}, 0.0);
    sum->left = count;
    return sum->promise.future();
  }();
  for (int i = 0; i < count; ++i) {
    worker.rpc_async<&add>(to, a, at::full({2}, 1.0 * i))
        .then([sum](Result<at::Tensor> part) {
          const base::LockGuard lock(sum->mutex);
          sum->value += part.value();
          if (--sum->left == 0) sum->promise.set(sum->value);
        })
        .forget();
  }
  return future;
}

class Adder {
 public:
  static Future<at::Tensor> static_add(Worker& worker, const std::string& to, const at::Tensor& a,
                                       const at::Tensor& b) {
    return worker.rpc_async<&add>(to, a, b);
  }
  Future<at::Tensor> bound_add(Worker& worker, const std::string& to, const at::Tensor& a, const at::Tensor& b) const {
    return worker.rpc_async<&add>(to, a, b).then([own = own_](Result<at::Tensor> sum) { return sum.value() + own; });
  }

 private:
  at::Tensor own_ = at::ones({2});
};

Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<&throw_first>("throw_first");
  registry.add<&add_at>("add_at");
  registry.add<&add_with_promise>("add_with_promise");
  registry.add<&add_chained>("add_chained");
  registry.add<&add_nested>("add_nested");
  registry.add<&add_in_steps>("add_in_steps");
  registry.add<&add_fanned_out>("add_fanned_out");
  registry.add<&Adder::static_add>("adder.static_add");
  registry.add<Adder>("adder").constructor<>().method<&Adder::bound_add>("bound_add");
  return registry;
}

class AsyncRows : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Worker& here() { return cluster_[0]; }
  static void expect(const at::Tensor& sum, double value) { EXPECT_TRUE(at::equal(sum, at::full({2}, value))); }
  /// Calls F at worker1, which asks worker2, in all three ways.
  template <auto F>
  void expect_all_ways(double value) {
    const std::string to = "worker2";
    expect(here().rpc_sync<F>("worker1", to, one_, two_), value);
    expect(here().rpc_async<F>("worker1", to, one_, two_).get(), value);
    expect(here().remote<F>("worker1", to, one_, two_).to_here(), value);
  }

  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_registry};
  const at::Tensor one_ = at::full({2}, 1.0);
  const at::Tensor two_ = at::full({2}, 2.0);
};
INSTANTIATE_TEST_SUITE_P(Seeds, AsyncRows, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(AsyncRows, Row06_01_WhatIsThrownBeforeTheFutureIsThereArrives) {
  const Error error = here().rpc_async<&throw_first>("worker1").result().error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  EXPECT_THAT(error.text(), ::testing::HasSubstr("expected"));
}

TEST_P(AsyncRows, Row06_03_TheCallerGetsTheValueNotTheFuture) { expect_all_ways<&add_at>(3); }

TEST_P(AsyncRows, Row06_04_APromiseIsCompletedByANestedCall) { expect_all_ways<&add_with_promise>(3); }

// And row 06.06, by reference.
TEST_P(AsyncRows, Row06_05_AContinuationOfACallIsReturned) { expect_all_ways<&add_chained>(5); }

// And row 06.08, by reference.
TEST_P(AsyncRows, Row06_07_AnAsynchronousFunctionCallsAnotherOne) { expect_all_ways<&add_nested>(5); }

// Covers row 06.10, too: C++ has one kind of methods that belong to the class.
TEST_P(AsyncRows, Row06_09_AStaticMethodIsAFunction) { expect_all_ways<&Adder::static_add>(3); }

// Covers rows 06.11 to 06.13: a method through a reference, sync, async and by reference.
TEST_P(AsyncRows, Row06_11_AMethodThroughAReferenceReturnsAFuture) {
  const RRef<Adder> adder = here().remote<Adder>("worker1");
  const std::string to = "worker2";
  expect(adder.rpc_sync<&Adder::bound_add>(to, one_, two_), 4);
  expect(adder.rpc_async<&Adder::bound_add>(to, one_, two_).get(), 4);
  expect(adder.remote<&Adder::bound_add>(to, one_, two_).to_here(), 4);
}

TEST_P(AsyncRows, Row06_14_TwentyContinuationsFollowOneCall) {
  expect(here().remote<&add_in_steps>("worker1", "worker2", one_, 20).to_here(), 22);
}

TEST_P(AsyncRows, Row06_15_TwentyCallsAtOnceCompleteOneFuture) {
  expect(here().rpc_sync<&add_fanned_out>("worker1", "worker2", one_, 20), 20 + 190);
}

TEST_P(AsyncRows, Row06_16_TwentyCallsAtOnceWithoutWaiting) {
  std::vector<Future<at::Tensor>> sums;
  for (int i = 0; i < 4; ++i) sums.push_back(here().rpc_async<&add_fanned_out>("worker1", "worker2", one_, 20));
  for (Future<at::Tensor>& sum : sums) expect(sum.get(), 210);
}

}  // namespace
}  // namespace caftan::test::async_rows_test
