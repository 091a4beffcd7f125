// Chains and loops of continuations: how deep the stack gets, what they keep, where they run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "baton_executor.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/strand.hpp"

namespace caftan::continuation_test {
namespace {

using test::BatonExecutor;

constexpr int kMany = 100'000;
constexpr std::uintptr_t kMostStack = 16 * 1024;

/// Measures the stack between the first and the deepest call of `here`.
class StackDepth {
 public:
  void here() {
    const auto at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    lowest_ = std::min(lowest_, at);
    highest_ = std::max(highest_, at);
  }
  std::uintptr_t bytes() const { return highest_ - lowest_; }

 private:
  std::uintptr_t lowest_ = UINTPTR_MAX;
  std::uintptr_t highest_ = 0;
};

Result<int> next(Result<int> r) { return r ? Result<int>(*r + 1) : r; }

TEST(Continuations, K1_CALL14_ALongChainRunsInTheStackOfOne) {
  for (const bool dropped : {false, true}) {
    StackDepth depth;
    auto promise = std::make_unique<Promise<int>>();
    Future<int> future = promise->future();
    for (int i = 0; i < kMany; ++i) {
      future = std::move(future).then([&depth](Result<int> r) {
        depth.here();
        return next(std::move(r));
      });
    }
    if (!dropped) promise->set(0);
    promise.reset();
    ASSERT_TRUE(future.ready());
    EXPECT_LT(depth.bytes(), kMostStack);
    const Result<int> result = future.result();
    if (dropped) {
      EXPECT_EQ(result.error().code(), Errc::broken_promise);
    } else {
      EXPECT_EQ(*result, kMany);
    }
  }
}

TEST(Continuations, K1_CALL14_AnAsynchronousLoopKeepsTheStackAndTheStatesOfOneRound) {
  struct Loop {
    std::deque<Promise<int>> open;  // what a peer answers
    std::vector<std::weak_ptr<rpc::FutureState<int>>> states;
    StackDepth depth;
    Future<int> run(int left) {
      depth.here();
      open.emplace_back();
      Future<int> future = open.back().future().then([this, left](Result<int>) -> Future<int> {
        if (left == 0) return make_ready_future<int>(7);
        return run(left - 1);
      });
      states.push_back(future.state());
      return future;
    }
  } loop;
  Future<int> end = loop.run(kMany);
  for (int i = 0; i <= kMany; ++i) {
    Promise<int> answer = std::move(loop.open.front());
    loop.open.pop_front();
    answer.set(i);
    if (i % 1000 != 0) continue;
    std::size_t alive = 0;
    for (const auto& state : loop.states) alive += state.expired() ? 0 : 1;
    ASSERT_LE(alive, 3U) << "after round " << i;
  }
  ASSERT_TRUE(end.ready());
  EXPECT_EQ(end.get(), 7);
  EXPECT_LT(loop.depth.bytes(), kMostStack);
}

TEST(Continuations, K1_CALL14_ALoopOverReadyFuturesRunsInTheStackOfOne) {
  StackDepth depth;
  const std::function<Future<int>(int)> loop = [&](int left) -> Future<int> {
    depth.here();
    return make_ready_future<int>(left).then(
        [&](Result<int> r) { return *r == 0 ? make_ready_future<int>(7) : loop(*r - 1); });
  };
  EXPECT_EQ(loop(kMany).get(), 7);
  EXPECT_LT(depth.bytes(), kMostStack);
}

TEST(Continuations, CALL14_AnOuterFutureThatIsCancelledStaysSo) {
  Promise<int> outer_input;
  Promise<int> inner;
  Future<int> outer = outer_input.future().then(
      [&](Result<int>) { return inner.future().then([](Result<int> r) { return next(r); }); });
  outer_input.set(1);
  EXPECT_FALSE(outer.ready());
  EXPECT_TRUE(outer.cancel());
  EXPECT_TRUE(inner.set(1));
  EXPECT_EQ(outer.result().error().code(), Errc::cancelled);
}

TEST(Continuations, CALL14_APromiseThatWasHandedOnKnowsThatTheOuterFutureWasCancelled) {
  Promise<int> outer;
  Future<int> future = outer.future();
  Promise<int> inner;
  outer.follow(inner.future());
  EXPECT_FALSE(inner.is_complete());
  EXPECT_TRUE(future.cancel());
  EXPECT_TRUE(inner.is_complete());
  EXPECT_FALSE(inner.set(1));
}

TEST(Continuations, CALL14_LongRowsOfPromisesThatFollowEachOtherEnd) {
  std::vector<Promise<int>> promises(kMany);
  Future<int> first = promises.front().future();
  for (int i = 0; i + 1 < kMany; ++i) promises[i].follow(promises[i + 1].future());
  promises.back().set(3);
  EXPECT_EQ(first.get(), 3);
}

TEST(Continuations, CALL14_WhatIsReadyWhenFollowedArrivesAtOnce) {
  Promise<int> promise;
  Future<int> future = promise.future();
  promise.follow(make_ready_future<int>(Error(Errc::timeout, "x")));
  EXPECT_EQ(future.result().error().code(), Errc::timeout);
  Promise<int> empty;
  Future<int> of_nothing = empty.future();
  empty.follow({});
  EXPECT_EQ(of_nothing.result().error().code(), Errc::broken_promise);
}

TEST(Continuations, CALL14_ThoseOfAFutureThatIsFollowedAreKept) {
  Promise<int> inner;
  Future<int> followed = inner.future();
  int seen = 0;
  auto looked = followed.then([&](Result<int> r) { seen = *r; });
  Promise<int> outer;
  Future<int> future = outer.future();
  outer.follow(std::move(followed));
  inner.set(4);
  EXPECT_EQ(seen, 4);
  EXPECT_EQ(future.get(), 4);
}

TEST(Continuations, CALL14_InsideOfAnotherOneTheyRunAfterIt) {
  std::string log;
  auto outer = make_ready_future<int>(1).then([&](Result<int>) {
    auto inner = make_ready_future<int>(2).then([&](Result<int>) { log += "inner "; });
    inner.forget();
    log += "outer ";
  });
  EXPECT_EQ(log, "outer inner ");
}

TEST(Continuations, CALL14_ThoseBehindOneThatWaitsGoToRunners) {
  BatonExecutor executor;
  int seen = 0;
  executor.post([&] {
    auto outer = make_ready_future<int>(1).then([&](Result<int>) {
      Future<int> inner = make_ready_future<int>(2).then([](Result<int> r) { return *r + 1; });
      seen = inner.get();
    });
    outer.forget();
  });
  executor.run_until_idle();
  EXPECT_EQ(seen, 3);
}

TEST(Continuations, CALL14_ThoseBehindOneThatWaitsRunFirstOnAThreadOfItsOwn) {
  int seen = 0;
  auto outer = make_ready_future<int>(1).then([&](Result<int>) {
    Future<int> inner = make_ready_future<int>(2).then([](Result<int> r) { return *r + 1; });
    seen = inner.get();
  });
  EXPECT_EQ(seen, 3);
}

TEST(Continuations, CALL14_LoopsSideBySideKeepNothing) {
  std::vector<std::weak_ptr<rpc::FutureState<int>>> states;
  const std::function<Future<int>(int)> loop = [&](int left) -> Future<int> {
    Future<int> future = make_ready_future<int>(left).then(
        [&](Result<int> r) { return *r == 0 ? make_ready_future<int>(7) : loop(*r - 1); });
    states.push_back(future.state());
    if (states.size() % 1000 == 0) {
      std::size_t alive = 0;
      for (const auto& state : states) alive += state.expired() ? 0 : 1;
      EXPECT_LE(alive, 8U);
    }
    return future;
  };
  auto both = make_ready_future<int>(0).then([&](Result<int>) {
    loop(5000).forget();
    loop(5000).forget();
  });
  EXPECT_TRUE(both.ready());
  EXPECT_EQ(states.size(), 10'002U);
}

/// A method whose continuation wants the turn of the method's object.
class OfAMethod {
 public:
  void ask_of_ready() {
    strand_.run([this] { waits(make_ready_future<int>(1)).forget(); });
    executor_.run_until_idle();
  }
  void ask_then_complete() {
    strand_.run([this] {
      Promise<int> promise;
      waits(promise.future()).forget();
      promise.set(1);
    });
    executor_.run_until_idle();
  }
  bool done() const { return done_; }

 private:
  Future<void> waits(Future<int> future) {
    return std::move(future).then([this](Result<int>) {
      EXPECT_FALSE(strand_.is_held_here());
      Promise<void> turn;
      Future<void> had = turn.future();
      strand_.run([&turn] { turn.set({}); });
      done_ = had.wait_for(std::chrono::seconds(1));
      EXPECT_TRUE(had.ready()) << "the turn was not given back";
    });
  }

  BatonExecutor executor_;
  rpc::Strand strand_{executor_};
  bool done_ = false;
};

TEST(Continuations, B4_CALL6_OnAReadyFutureInAMethodTheyDoNotKeepItsTurn) {
  OfAMethod object;
  object.ask_of_ready();
  EXPECT_TRUE(object.done());
}

TEST(Continuations, B4_CALL6_ThoseThatAMethodCompletesDoNotKeepItsTurn) {
  OfAMethod object;
  object.ask_then_complete();
  EXPECT_TRUE(object.done());
}

}  // namespace
}  // namespace caftan::continuation_test
