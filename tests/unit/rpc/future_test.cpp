#include "caftan/rpc/future.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "baton_executor.hpp"
#include "caftan/rpc/strand.hpp"
#include "caftan/rpc/wait.hpp"

namespace caftan::future_test {
namespace {

using test::BatonExecutor;

/// Runs `body` as a task, where promises of no worker find the executor.
void run_task(BatonExecutor& executor, base::Task body) {
  executor.post(std::move(body));
  executor.run_until_idle();
}

TEST(Future, CALL1_ADroppedPromiseIsBroken) {
  Future<int> future;
  {
    Promise<int> promise;
    future = promise.future();
    EXPECT_FALSE(future.ready());
  }
  EXPECT_EQ(future.result().error().code(), Errc::broken_promise);
}

TEST(Future, CALL1_TheFirstOutcomeStays) {
  Promise<int> promise;
  Future<int> future = promise.future();
  EXPECT_TRUE(future.cancel());
  EXPECT_TRUE(promise.is_complete());
  EXPECT_FALSE(promise.set(1));
  EXPECT_FALSE(future.cancel());
  EXPECT_EQ(future.result().error().code(), Errc::cancelled);
}

TEST(Future, GetThrowsTheErrorEachTimeItIsAsked) {
  Future<int> future = make_ready_future<int>(Error(Errc::timeout, "late"));
  for (int i = 0; i < 2; ++i) {
    try {
      future.get();
      FAIL() << "get did not throw";
    } catch (const RpcException& e) {
      EXPECT_EQ(e.error().code(), Errc::timeout);
    }
  }
}

TEST(Future, GetMayBeCalledAgainOnAnLvalueAndMovesFromAnRvalue) {
  Future<std::vector<int>> future = make_ready_future<std::vector<int>>(std::vector<int>{1, 2});
  EXPECT_EQ(future.get(), (std::vector<int>{1, 2}));
  EXPECT_EQ(future.get(), (std::vector<int>{1, 2}));
  EXPECT_TRUE(future.valid());
  EXPECT_EQ(std::move(future).get(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(future.valid());
  EXPECT_EQ(future.result().error().code(), Errc::broken_promise);
}

TEST(Future, MoveOnlyValuesComeOut) {
  Promise<std::unique_ptr<int>> promise;
  Future<std::unique_ptr<int>> future = promise.future();
  promise.set(std::make_unique<int>(3));
  EXPECT_EQ(*std::move(future).get(), 3);
}

TEST(Future, AWaitEndsWhenAnotherTaskSetsTheValue) {
  BatonExecutor executor;
  Promise<int> promise;
  Future<int> future = promise.future();
  int seen = 0;
  executor.post([&] { seen = future.get(); });
  executor.run_until_idle();
  EXPECT_EQ(seen, 0);
  run_task(executor, [&] { promise.set(7); });
  EXPECT_EQ(seen, 7);
}

TEST(Future, WaitForEndsAtItsTimeAndLeavesTheFutureUsable) {
  BatonExecutor executor;
  Promise<int> promise;
  Future<int> future = promise.future();
  std::vector<bool> ready;
  executor.post([&] {
    ready.push_back(future.wait_for(std::chrono::milliseconds(5)));
    ready.push_back(future.wait_for(std::chrono::seconds(5)));
  });
  executor.post_at(executor.clock().now() + std::chrono::milliseconds(8), [&] { promise.set(1); });
  executor.advance(std::chrono::seconds(10));
  EXPECT_EQ(ready, (std::vector<bool>{false, true}));
  EXPECT_EQ(future.get(), 1);
}

TEST(Future, ContinuationsRunInOrderInTheCompletingThread) {
  Promise<int> promise;
  Future<int> future = promise.future();
  std::vector<int> order;
  auto first = future.then([&](Result<int> r) { order.push_back(*r); });
  auto second = future.then([&](Result<int> r) { order.push_back(*r + 1); });
  EXPECT_TRUE(order.empty());
  promise.set(10);
  EXPECT_EQ(order, (std::vector<int>{10, 11}));
  EXPECT_TRUE(first.ready());
  EXPECT_TRUE(second.ready());
}

TEST(Future, ThenGivesWhatTheContinuationReturns) {
  const auto from = [](Result<int> r) { return make_ready_future<int>(std::move(r)); };
  EXPECT_EQ(from(2).then([](Result<int> r) { return std::to_string(*r); }).get(), "2");
  from(2).then([](Result<int>) {}).get();
  EXPECT_EQ(from(2).then([](Result<int>) -> Result<int> { return Error(Errc::timeout, "x"); }).result().error().code(),
            Errc::timeout);
  EXPECT_EQ(from(2).then([&](Result<int> r) { return from(*r * 3); }).get(), 6);
  EXPECT_EQ(from(Error(Errc::peer_down, "x")).then([](Result<int> r) { return r.has_value(); }).get(), false);
}

TEST(Future, U19_CALL4_AThrowingContinuationIsAnErrorOfThisWorker) {
  auto future = make_ready_future<int>(1).then([](Result<int>) -> int { throw std::runtime_error("boom"); });
  const Error error = future.result().error();
  EXPECT_EQ(error.code(), Errc::user_error);
  EXPECT_EQ(error.text(), "continuation: std::runtime_error: boom");
  auto own =
      make_ready_future<int>(1).then([](Result<int>) -> int { throw RpcException(user_error("bank.no_funds", "no")); });
  EXPECT_EQ(own.result().error().kind(), "bank.no_funds");
}

TEST(Future, CALL6_AContinuationNeverRunsOnTheStackOfAWaitingCaller) {
  BatonExecutor executor;
  Promise<int> promise;
  bool ran = false;
  auto done = promise.future().then([&](Result<int>) {
    EXPECT_FALSE(Ambient::current()->inside_reading_wait);
    ran = true;
  });
  run_task(executor, [&] {
    const rpc::NoUserCode reading;
    promise.set(1);
    EXPECT_FALSE(ran);
  });
  EXPECT_TRUE(ran);
}

TEST(Future, CALL9_AContinuationRunsUnderTheAmbientOfItsRegistration) {
  const Ambient* const outside = Ambient::current();  // a test before may have given the thread one of its own
  Promise<int> promise;
  Ambient ambient;
  ambient.trace = 5;
  Future<std::uint64_t> trace;
  {
    const AmbientSwap swap(&ambient);
    trace = promise.future().then([](Result<int>) { return Ambient::current()->trace; });
  }
  EXPECT_EQ(Ambient::current(), outside);
  promise.set(1);
  EXPECT_EQ(Ambient::current(), outside);
  EXPECT_EQ(trace.get(), 5U);
}

TEST(WaitAll, GivesValuesInOrder) {
  BatonExecutor executor;
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (auto& promise : promises) futures.push_back(promise.future());
  std::vector<int> values;
  executor.post([&] { values = wait_all(futures); });
  for (const int i : {2, 0, 1}) executor.post([&, i] { promises[i].set(i * 10); });
  executor.run_until_idle();
  EXPECT_EQ(values, (std::vector<int>{0, 10, 20}));
}

TEST(WaitAll, EndsWithTheFirstErrorAtOnce) {
  BatonExecutor executor;
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (auto& promise : promises) futures.push_back(promise.future());
  Errc seen = Errc::ok;
  executor.post([&] { seen = try_wait_all(futures).error().code(); });
  executor.post([&] { promises[2].set(Error(Errc::peer_down, "gone")); });
  executor.run_until_idle();
  EXPECT_EQ(seen, Errc::peer_down);
  EXPECT_FALSE(futures[0].ready());
}

TEST(WaitAll, EndsAtItsTimeout) {
  BatonExecutor executor;
  std::vector<Promise<void>> promises(2);
  std::vector<Future<void>> futures;
  for (auto& promise : promises) futures.push_back(promise.future());
  promises[0].set({});
  Errc seen = Errc::ok;
  executor.post([&] { seen = try_wait_all(futures, std::chrono::milliseconds(3)).error().code(); });
  executor.advance(std::chrono::milliseconds(2));
  EXPECT_EQ(seen, Errc::ok);
  executor.advance(std::chrono::milliseconds(2));
  EXPECT_EQ(seen, Errc::timeout);
}

TEST(WaitAll, H3_LeavesTheFuturesAsTheyAre) {
  std::vector<Future<int>> futures;
  futures.push_back(make_ready_future<int>(1));
  futures.push_back(make_ready_future<int>(Error(Errc::peer_down, "gone")));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(try_wait_all(futures).error().code(), Errc::peer_down);
  EXPECT_EQ(futures[0].get(), 1);
  EXPECT_EQ(futures[1].result().error().code(), Errc::peer_down);
  futures.pop_back();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(wait_all(futures), std::vector<int>{1});
}

TEST(WaitAll, MovesTheValuesOutOfFuturesThatAreGivenAway) {
  std::vector<Future<std::unique_ptr<int>>> futures;
  futures.push_back(make_ready_future<std::unique_ptr<int>>(std::make_unique<int>(3)));
  EXPECT_EQ(*wait_all(std::move(futures)).front(), 3);
}

TEST(WaitAllResults, H3_GivesEveryOutcome) {
  BatonExecutor executor;
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (auto& promise : promises) futures.push_back(promise.future());
  std::vector<Result<int>> results;
  executor.post([&] { results = wait_all_results(futures); });
  executor.post([&] { promises[0].set(Error(Errc::peer_down, "gone")); });
  executor.run_until_idle();
  EXPECT_TRUE(results.empty()) << "an error does not end the wait";
  executor.post([&] { promises[2].set(Error(Errc::timeout, "late")); });
  executor.post([&] { promises[1].set(20); });
  executor.run_until_idle();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].error().code(), Errc::peer_down);
  EXPECT_EQ(*results[1], 20);
  EXPECT_EQ(results[2].error().code(), Errc::timeout);
  EXPECT_EQ(futures[0].result().error().code(), Errc::peer_down);
}

TEST(WaitAllResults, WhatIsNotThereInTimeIsATimeout) {
  BatonExecutor executor;
  std::vector<Promise<int>> promises(2);
  std::vector<Future<int>> futures;
  for (auto& promise : promises) futures.push_back(promise.future());
  promises[1].set(5);
  std::vector<Result<int>> results;
  executor.post([&] { results = wait_all_results(futures, std::chrono::milliseconds(3)); });
  executor.advance(std::chrono::milliseconds(4));
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].error().code(), Errc::timeout);
  EXPECT_EQ(*results[1], 5);
}

TEST(WaitAny, NamesTheFirstThatIsReadyAlsoWithAnError) {
  BatonExecutor executor;
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (auto& promise : promises) futures.push_back(promise.future());
  std::optional<std::size_t> first;
  executor.post([&] { first = wait_any(futures); });
  executor.post([&] { promises[1].set(Error(Errc::timeout, "x")); });
  executor.run_until_idle();
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(wait_any(std::vector<Future<int>>()), std::nullopt);
}

}  // namespace
}  // namespace caftan::future_test
