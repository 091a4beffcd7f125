#include "caftan/rpc/collect.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "baton_executor.hpp"

namespace caftan::collect_test {
namespace {

using test::BatonExecutor;

/// Promises and the vector of their futures.
template <class T>
struct Several {
  explicit Several(std::size_t count) : promises(count) {
    for (Promise<T>& promise : promises) futures.push_back(promise.future());
  }
  std::vector<Promise<T>> promises;
  std::vector<Future<T>> futures;
};

TEST(CollectAll, GivesEveryOutcomeInOrderWhenTheLastHasEnded) {
  Several<int> several(3);
  Future<std::vector<Result<int>>> all = collect_all_results(std::move(several.futures));
  several.promises[2].set(30);
  several.promises[0].set(Error(Errc::peer_down, "gone"));
  EXPECT_FALSE(all.ready());
  several.promises[1].set(20);
  ASSERT_TRUE(all.ready());
  const std::vector<Result<int>> outcomes = all.get();
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].error().code(), Errc::peer_down);
  EXPECT_EQ(*outcomes[1], 20);
  EXPECT_EQ(*outcomes[2], 30);
}

TEST(CollectAll, GivesTheValuesInOrder) {
  Several<std::string> several(2);
  Future<std::vector<std::string>> all = collect_all(std::move(several.futures));
  several.promises[1].set(std::string("b"));
  EXPECT_FALSE(all.ready());
  several.promises[0].set(std::string("a"));
  EXPECT_EQ(all.get(), (std::vector<std::string>{"a", "b"}));
}

TEST(CollectAll, EndsWithTheFirstErrorWithoutWaitingForTheRest) {
  Several<int> several(3);
  Future<std::vector<int>> all = collect_all(std::move(several.futures));
  several.promises[1].set(Error(Errc::timeout, "late"));
  ASSERT_TRUE(all.ready());
  EXPECT_EQ(all.result().error().code(), Errc::timeout);
  several.promises[0].set(Error(Errc::peer_down, "gone"));
  several.promises[2].set(1);
  EXPECT_EQ(all.result().error().code(), Errc::timeout);
}

TEST(CollectAll, TakesFuturesWithoutValues) {
  Several<void> several(2);
  Future<void> all = collect_all(std::move(several.futures));
  several.promises[0].set({});
  EXPECT_FALSE(all.ready());
  several.promises[1].set({});
  EXPECT_TRUE(all.result());
}

TEST(CollectAll, OfNothingIsReady) {
  EXPECT_TRUE(collect_all(std::vector<Future<int>>()).get().empty());
  EXPECT_TRUE(collect_all_results(std::vector<Future<int>>()).get().empty());
  EXPECT_TRUE(collect_all(std::vector<Future<void>>()).result());
}

TEST(CollectAll, TakesValuesThatOnlyMoveAndFuturesThatAreReadyOrEmpty) {
  std::vector<Future<std::unique_ptr<int>>> futures;
  futures.push_back(make_ready_future<std::unique_ptr<int>>(std::make_unique<int>(4)));
  auto all = collect_all(std::move(futures));
  EXPECT_EQ(*std::move(all).get().front(), 4);
  auto empty = collect_all_results(std::vector<Future<int>>(1));
  EXPECT_EQ(empty.get().front().error().code(), Errc::broken_promise);
}

/// A future that a continuation has returned hands its outcome on, and does not become ready itself.
TEST(CollectAll, ReturnedByAContinuationEndsWithItsErrorWhereverThatIs) {
  for (const bool error_first : {true, false}) {
    Several<int> several(2);
    Future<std::vector<int>> all =
        make_ready_future<int>(0).then([&](const Result<int>&) { return collect_all(std::move(several.futures)); });
    const auto fail = [&] { several.promises[1].set(Error(Errc::peer_down, "gone")); };
    if (error_first) fail();
    several.promises[0].set(1);
    if (!error_first) fail();
    ASSERT_TRUE(all.ready());
    EXPECT_EQ(all.result().error().code(), Errc::peer_down);
  }
}

TEST(CollectAll, OfNoValuesThatAPromiseFollowsEndsWithItsError) {
  Several<void> several(2);
  Promise<void> promise;
  Future<void> all = promise.future();
  promise.follow(collect_all(std::move(several.futures)));
  several.promises[0].set(Error(Errc::peer_down, "gone"));
  several.promises[1].set({});
  ASSERT_TRUE(all.ready());
  EXPECT_EQ(all.result().error().code(), Errc::peer_down);
}

TEST(CollectAll, NoThreadWaitsForIt) {
  BatonExecutor executor;
  Several<int> several(2);
  int sum = 0;
  collect_all(std::move(several.futures))
      .then([&](Result<std::vector<int>> values) {
        for (const int value : *values) sum += value;
      })
      .forget();
  executor.post([&] { several.promises[0].set(1); });
  executor.run_until_idle();
  executor.post([&] { several.promises[1].set(2); });
  executor.run_until_idle();
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace caftan::collect_test
