// What callers may rely on beyond the way of one call: limits, misuse that is found, what a stop gives up.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/rpc/wait.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "caftan/transport/threaded_executor.hpp"

namespace caftan::calls_test {
namespace {

using namespace std::chrono_literals;

int add(int a, int b) { return a + b; }
std::string asked_by(const CallInfo& info) { return info.caller.name(); }
/// Registered as brief, though it asks another worker and waits, which a brief function may not do.
int asks_and_waits(Worker& worker, const std::string& whom) { return worker.rpc_sync<&add>(whom, 1, 2); }
int waits_for_many(Worker& worker, const std::string& whom) {
  std::vector<Future<int>> futures;
  futures.push_back(worker.rpc_async<&add>(whom, 1, 2));
  return static_cast<int>(wait_any(futures).value());
}
/// Makes `count` calls without waiting for any, then waits for all.
int burst(Worker& worker, const std::string& whom, int count) {
  std::vector<Future<int>> futures;
  for (int i = 0; i < count; ++i) futures.push_back(worker.rpc_async<&add>(whom, i, 1));
  int sum = 0;
  for (const int value : wait_all(futures)) sum += value;
  return sum;
}
int sum_of_burst(int count) { return count * (count + 1) / 2; }

/// Latches between the test and `compute`, which runs until the test lets it return.
struct Computation {
  std::latch begun{1};
  std::latch may_end{1};
};
Computation* computation = nullptr;
int compute() {
  computation->begun.count_down();
  computation->may_end.wait();
  return 1;
}

Result<int> withdraw(int amount) { return user_error("bank.no_funds", std::to_string(amount) + " are missing"); }
int withdraw_or_throw(int amount) { throw RpcException(user_error("bank.no_funds", std::to_string(amount))); }
int withdraw_elsewhere(Worker& worker, const std::string& bank) { return worker.rpc_sync<&withdraw>(bank, 3); }
Future<int> throws_later(Worker& worker, const std::string& whom) {
  return worker.rpc_async<&add>(whom, 1, 2).then([](Result<int>) -> int { throw std::runtime_error("no luck"); });
}

std::optional<Promise<int>> gate;

struct Unkept {
  std::latch asked{2};
  std::vector<Promise<int>> promises;
};
Unkept* unkept = nullptr;
Future<int> ask() {
  unkept->promises.emplace_back();
  unkept->asked.count_down();
  return unkept->promises.back().future();
}

class Drawer {
 public:
  static inline std::atomic<int> alive{0};
  Drawer() { ++alive; }
  Drawer(const Drawer&) = delete;
  Drawer& operator=(const Drawer&) = delete;
  ~Drawer() { --alive; }

  int waits_for(const RRef<Drawer>& other) { return other.rpc_sync<&Drawer::never>(); }
  Future<int> never() {
    kept_.emplace_back();
    return kept_.back().future();
  }
  Future<int> ask_object() { return ask(); }
  /// Exclusive method: keeps the object's turn until the test opens the gate.
  int hold() { return gate->future().get(); }
  int count() { return static_cast<int>(kept_.size()); }
  int close() {
    const auto count = static_cast<int>(kept_.size());
    kept_.clear();
    return count;
  }

 private:
  std::vector<Promise<int>> kept_;
};

/// Makes a call to `drawer` that never gets a reply, and returns without a wait for it.
int begins_never(const RRef<Drawer>& drawer) {
  drawer.rpc_async<&Drawer::never>().forget();
  return 1;
}

Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<&asked_by>("asked_by");
  registry.add<&asks_and_waits>("asks_and_waits", brief);
  registry.add<&waits_for_many>("waits_for_many", brief);
  registry.add<&burst>("burst");
  registry.add<&compute>("compute");
  registry.add<&ask>("ask");
  registry.add<Drawer>("drawer")
      .constructor<>()
      .method<&Drawer::never>("never")
      .method<&Drawer::close>("close")
      .method<&Drawer::count>("count")
      .method<&Drawer::ask_object>("ask")
      .exclusive<&Drawer::hold>("hold")
      .method<&Drawer::waits_for>("waits_for");
  registry.add<&begins_never>("begins_never");
  registry.add<&withdraw>("withdraw");
  registry.add<&withdraw_or_throw>("withdraw_or_throw");
  registry.add<&withdraw_elsewhere>("withdraw_elsewhere");
  registry.add<&throws_later>("throws_later");
  return registry;
}

class Calls : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::size_t kPending = 4;
  testing::Cluster cluster_{GetParam(), {"a", "b", "c"}, make_registry, [](WorkerOptions& options) {
                              options.limits.pending_calls = kPending;
                            }};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Calls, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(Calls, K9_ManyCallsWaitForRoomInsteadOfFailing) {
  EXPECT_EQ(burst(cluster_[0], "b", 40), sum_of_burst(40));
  EXPECT_EQ(cluster_[0].counters().requests_in_flight, 0U);
}

TEST_P(Calls, K9_FunctionsThatMakeManyCallsWaitForRoomToo) {
  std::vector<Future<int>> bursts;
  for (int i = 0; i < 3; ++i) bursts.push_back(cluster_[2].rpc_async<&burst>("a", "b", 20));
  for (Future<int>& one : bursts) EXPECT_EQ(one.get(), sum_of_burst(20));
}

TEST_P(Calls, K9_ReferencesWaitForRoomToo) {
  std::vector<RRef<int>> made;
  for (int i = 0; i < 40; ++i) made.push_back(cluster_[0].remote<&add>("b", i, 1));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(made[static_cast<std::size_t>(i)].to_here(), i + 1);
}

TEST_P(Calls, K9_WhoDoesNotWantToWaitIsOverloaded) {
  const RRef<Drawer> drawer = cluster_[0].remote<Drawer>("b");
  std::vector<Future<int>> open;
  for (std::size_t i = 0; i < kPending; ++i) open.push_back(drawer.rpc_async<&Drawer::never>());
  cluster_.run_until_idle();
  const auto refused =
      cluster_[0].with({.timeout = std::nullopt, .fail_when_full = true}).try_rpc_sync<&add>("b", 1, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::overloaded);
  EXPECT_NE(refused.error().text().find("limits.pending_calls"), std::string::npos) << refused.error().text();
  const auto late = cluster_[0].with({.timeout = 5ms, .fail_when_full = false}).try_rpc_sync<&add>("b", 1, 2);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_NE(late.error().text().find("limits.pending_calls"), std::string::npos) << late.error().text();
  for (Future<int>& one : open) one.cancel();
  cluster_.run_until_idle();
  EXPECT_EQ(drawer.rpc_sync<&Drawer::close>(), static_cast<int>(kPending));
}

TEST(CallsOnThreads, K9_OneRunnerIsEnoughToWaitForRoom) {
  const auto executor =
      std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1});
  const auto network = std::make_shared<LocalNetwork>();
  std::vector<std::unique_ptr<Worker>> workers;
  for (const char* name : {"a", "b", "c"}) {
    WorkerOptions options;
    options.name = name;
    options.world = {{"a", ""}, {"b", ""}, {"c", ""}};
    options.executor = executor;
    options.network = network;
    options.limits.pending_calls = 8;
    workers.push_back(Worker::launch(std::move(options), make_registry()).value());
  }
  for (const auto& worker : workers) worker->wait_until_ready().value();
  EXPECT_EQ(workers[2]->rpc_sync<&burst>("a", "b", 2000), sum_of_burst(2000));
}

/// Returns the workers a and b, ready; a stop of either waits for no call.
std::vector<std::unique_ptr<Worker>> two_workers(const std::shared_ptr<transport::ThreadedExecutor>& executor) {
  const auto network = std::make_shared<LocalNetwork>();
  std::vector<std::unique_ptr<Worker>> workers;
  for (const char* name : {"a", "b"}) {
    WorkerOptions options;
    options.name = name;
    options.world = {{"a", ""}, {"b", ""}};
    options.executor = executor;
    options.network = network;
    options.stop_timeout = 0ms;
    workers.push_back(Worker::launch(std::move(options), make_registry()).value());
  }
  for (const auto& worker : workers) worker->wait_until_ready().value();
  return workers;
}

TEST(CallsOnThreads, K3_AStopEndsThoughAllRunnersCompute) {
  std::vector<std::unique_ptr<Worker>> workers =
      two_workers(std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1}));
  Computation running;
  computation = &running;
  const Future<int> call = workers[0]->rpc_async<&compute>("b");
  running.begun.wait();
  const StopReport given_up = workers[1]->stop();  // this line hangs if `stop` waits for the runner
  EXPECT_EQ(given_up.served_calls, 1U);
  EXPECT_GT(given_up.in_use, 0U);
  running.may_end.count_down();
  workers.clear();
}

TEST(CallsOnThreads, K3_APromiseMayOutliveTheWorkerThatServesItAndTheExecutor) {
  auto executor = std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1});
  std::vector<std::unique_ptr<Worker>> workers = two_workers(executor);
  Unkept asked;
  unkept = &asked;
  {
    const RRef<Drawer> drawer = workers[0]->remote<Drawer>("b");
    workers[0]->rpc_async<&ask>("b").forget();
    drawer.rpc_async<&Drawer::ask_object>().forget();
    asked.asked.wait();
  }
  workers.clear();
  const std::weak_ptr<transport::ThreadedExecutor> ended = std::exchange(executor, nullptr);
  EXPECT_TRUE(ended.expired());
  asked.promises.clear();  // completes the promises of both calls with an error, after the end of their worker
}

TEST(CallsOnThreads, K3_AnObjectThatKeepsThePromiseOfItsOwnMethodGoesWithItsWorker) {
  std::vector<std::unique_ptr<Worker>> workers =
      two_workers(std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1}));
  {
    const RRef<Drawer> drawer = workers[0]->remote<Drawer>("b");
    drawer.rpc_async<&Drawer::never>().forget();
    EXPECT_EQ(drawer.rpc_sync<&Drawer::count>(), 1);
    EXPECT_EQ(Drawer::alive, 1);
  }
  workers.clear();
  EXPECT_EQ(Drawer::alive, 0);
}

TEST_P(Calls, U4_AWaitInABriefFunctionFailsAtOnceAndNamesIt) {
  const base::TimePoint begun = cluster_.executor().clock().now();
  const auto single = cluster_[0].try_rpc_sync<&asks_and_waits>("b", "a");
  const auto several = cluster_[0].try_rpc_sync<&waits_for_many>("b", "a");
  EXPECT_LT(cluster_.executor().clock().now() - begun, 1s);
  for (const auto& [result, name] : {std::pair(&single, "asks_and_waits"), std::pair(&several, "waits_for_many")}) {
    ASSERT_FALSE(*result);
    const Error* const cause = result->error().cause();
    ASSERT_NE(cause, nullptr) << result->error().message();
    EXPECT_EQ(cause->code(), Errc::would_deadlock);
    EXPECT_NE(cause->text().find(name), std::string::npos) << cause->text();
  }
  EXPECT_EQ(cluster_[0].rpc_sync<&add>("b", 1, 2), 3) << "the connection is not harmed";
}

TEST_P(Calls, A7_APeerOfAnotherWorkerIsRefused) {
  const Peer foreign = cluster_[0].peer("c");
  const auto call = cluster_[1].try_rpc_sync<&asked_by>(foreign);
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().code(), Errc::bad_arguments);
  const auto made = cluster_[1].try_remote<Drawer>(cluster_[0].peer("b"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::bad_arguments);
  EXPECT_EQ(cluster_[1].rpc_sync<&asked_by>(cluster_[1].peer("c")), "b");
  EXPECT_EQ(cluster_[1].rpc_sync<&add>("a", 1, 2), 3) << "the connection is not harmed";
}

TEST_P(Calls, U19_AnErrorOfTheApplicationsOwnArrivesWithItsKind) {
  for (const auto& result :
       {cluster_[0].try_rpc_sync<&withdraw>("b", 3), cluster_[0].try_rpc_sync<&withdraw_or_throw>("b", 3)}) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Errc::user_error) << result.error().message();
    EXPECT_EQ(result.error().kind(), "bank.no_funds");
    EXPECT_EQ(result.error().worker(), "b");
  }
  const auto nested = cluster_[0].try_rpc_sync<&withdraw_elsewhere>("b", "c");
  ASSERT_FALSE(nested);
  EXPECT_EQ(nested.error().code(), Errc::remote_exception);
  EXPECT_EQ(nested.error().kind(), "");
  ASSERT_NE(nested.error().cause(), nullptr);
  EXPECT_EQ(nested.error().cause()->kind(), "bank.no_funds");
  EXPECT_EQ(nested.error().cause()->worker(), "c");
}

TEST_P(Calls, U19_WhatAContinuationThrowsForACallerIsARemoteException) {
  const auto result = cluster_[0].try_rpc_sync<&throws_later>("b", "c");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::remote_exception);
  EXPECT_EQ(result.error().worker(), "b");
}

TEST_P(Calls, U9_ATimeoutNamesTheFunctionTheTimeAndItsKey) {
  const RRef<Drawer> drawer = cluster_[0].remote<Drawer>("b");
  const Error own = drawer.with({.timeout = 20ms}).try_rpc_sync<&Drawer::never>().error();
  EXPECT_EQ(own.code(), Errc::timeout);
  EXPECT_EQ(
      own.text(),
      "drawer.never: no reply within 20ms, the time-out of this call (CallOptions::timeout); b is connected: the call "
      "still runs there, has returned a future whose promise is not set yet, or waits behind other calls or for its "
      "turn on a busy object or until fewer calls wait there (max_threads bounds them); once it ends the log of b says "
      "how long each took (log/b.log in a run)");
  ASSERT_TRUE(cluster_[0].set_rpc_timeout(2s));
  const Error common = drawer.try_rpc_sync<&Drawer::never>().error();
  EXPECT_NE(common.text().find("drawer.never: no reply within 2s (cluster.rpc_timeout"), std::string::npos)
      << common.text();
  const RRef<Drawer> between = cluster_[2].remote<Drawer>("a");
  const RRef<Drawer> last = cluster_[2].remote<Drawer>("b");
  const Error outer = between.with({.timeout = 50ms}).try_rpc_sync<&Drawer::waits_for>(last).error();
  EXPECT_NE(outer.text().find("drawer.waits_for"), std::string::npos) << outer.text();
}

TEST_P(Calls, U9_ATimeoutOfAFetchSaysThatTheValueMayNotBeThereYet) {
  const RRef<Drawer> drawer = cluster_[0].remote<Drawer>("b");
  const RRef<int> value = drawer.remote<&Drawer::never>();
  const Error late = value.with({.timeout = 20ms}).try_to_here().error();
  EXPECT_EQ(late.code(), Errc::timeout);
  EXPECT_EQ(
      late.text(),
      "to_here: no reply within 20ms, the time-out of this call (CallOptions::timeout); b is connected: the call that "
      "makes the value still runs there, has returned a future whose promise is not set yet, or the fetch waits behind "
      "other calls or for its turn on a busy object or until fewer calls wait there (max_threads bounds them); once it "
      "ends the log of b says how long each took (log/b.log in a run)");
}

TEST_P(Calls, U9_CALL18_TheLogOfTheCalleeSaysOfALateCallHowLongItWaitedAndTook) {
  const auto late_lines = [this] {
    std::vector<std::string> found;
    for (const std::string& line : cluster_.log()) {
      if (line.find("after its time") != std::string::npos || line.find("after their time") != std::string::npos)
        found.push_back(line);
    }
    return found;
  };
  const RRef<Drawer> drawer = cluster_[0].remote<Drawer>("b");
  EXPECT_FALSE(drawer.with({.timeout = 20ms}).try_rpc_sync<&Drawer::never>());
  cluster_.executor().advance(980ms);
  EXPECT_TRUE(late_lines().empty()) << "it has not ended";
  EXPECT_EQ(drawer.rpc_sync<&Drawer::close>(), 1);
  cluster_.run_until_idle();
  ASSERT_EQ(late_lines().size(), 1U);
  EXPECT_EQ(late_lines()[0],
            "b: drawer.never, called by a, ended 980ms after its time: it waited 0s here before it began, and took "
            "1s then");

  gate.emplace();
  const Future<int> holding = drawer.rpc_async<&Drawer::hold>();
  cluster_.run_until_idle();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(drawer.with({.timeout = 20ms}).try_rpc_sync<&Drawer::close>());
  cluster_.executor().advance(440ms);
  gate->set(1);
  cluster_.run_until_idle();
  gate.reset();
  ASSERT_EQ(late_lines().size(), 2U);
  EXPECT_EQ(late_lines()[1],
            "b: drawer.close, called by a, ended 480ms after its time: it waited 500ms here before it began, and took "
            "0s then");
  cluster_.executor().advance(1s);
  ASSERT_EQ(late_lines().size(), 3U);
  EXPECT_EQ(late_lines()[2], "b: drawer.close: 2 more calls ended after their time in this second");
}

TEST_P(Calls, U10_ErrorsThatAreNeverReadAreOneLineAFunctionAndSecond) {
  for (int i = 0; i < 100; ++i) static_cast<void>(cluster_[0].rpc_async<&withdraw>("b", 3));
  for (int i = 0; i < 3; ++i) static_cast<void>(cluster_[0].rpc_async<&throws_later>("b", "c"));
  cluster_.run_until_idle();
  const auto lines = [this](const std::string& of) {
    std::vector<std::string> found;
    for (const std::string& line : cluster_.log()) {
      if (line.find("never read") != std::string::npos && line.find(of) != std::string::npos) found.push_back(line);
    }
    return found;
  };
  EXPECT_EQ(lines("withdraw").size(), 1U);
  EXPECT_EQ(lines("throws_later").size(), 1U);
  cluster_.executor().advance(1s);
  ASSERT_EQ(lines("withdraw").size(), 2U);
  EXPECT_NE(lines("withdraw")[1].find("99 more"), std::string::npos) << lines("withdraw")[1];
  cluster_.executor().advance(5s);
  EXPECT_EQ(lines("withdraw").size(), 2U);
  static_cast<void>(cluster_[0].rpc_async<&withdraw>("b", 3));
  cluster_.run_until_idle();
  EXPECT_EQ(lines("withdraw").size(), 3U) << "later ones are logged again";
}

TEST_P(Calls, CALL5_ACancelReachesCallsThatAlreadyWait) {
  const RRef<Drawer> between = cluster_[0].remote<Drawer>("b");
  // a asks b, whose method asks c, which never answers.
  const RRef<Drawer> passed = cluster_[0].remote<Drawer>("c");
  Future<int> call = between.rpc_async<&Drawer::waits_for>(passed);
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().requests_in_flight, 1U);
  const base::TimePoint begun = cluster_.executor().clock().now();
  EXPECT_TRUE(call.cancel());
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().requests_in_flight, 0U) << "b goes on waiting for c";
  EXPECT_EQ(cluster_.executor().clock().now(), begun);
  EXPECT_EQ(between.rpc_sync<&Drawer::close>(), 0) << "the turn is free again";
}

TEST(CallsAtStart, H7_ANegativeTimeoutIsRefused) {
  WorkerOptions options;
  options.name = "a";
  options.world = {{"a", ""}};
  options.network = std::make_shared<LocalNetwork>();
  options.rpc_timeout = -1s;
  const auto worker = Worker::launch(std::move(options), make_registry());
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().code(), Errc::invalid_config);
  EXPECT_NE(worker.error().text().find("rpc_timeout"), std::string::npos);
}

TEST_P(Calls, TheDefaultTimeoutCanBeChangedWhileAWorkerRuns) {
  const RRef<Drawer> drawer = cluster_[0].remote<Drawer>("b");
  ASSERT_TRUE(cluster_[0].set_rpc_timeout(20ms));
  const base::TimePoint begun = cluster_.executor().clock().now();
  EXPECT_EQ(drawer.try_rpc_sync<&Drawer::never>().error().code(), Errc::timeout);
  EXPECT_LT(cluster_.executor().clock().now() - begun, 1s);
  EXPECT_EQ(cluster_[0].set_rpc_timeout(-1ms).error().code(), Errc::bad_arguments);
  EXPECT_EQ(drawer.rpc_sync<&Drawer::close>(), 1);
}

TEST_P(Calls, H8_StopSaysWhatItGaveUp) {
  const RRef<Drawer> drawer = cluster_[0].remote<Drawer>("b");
  Future<int> open = drawer.rpc_async<&Drawer::never>();
  cluster_.run_until_idle();
  const StopReport caller = cluster_[0].stop();
  EXPECT_EQ(caller.calls, 1U);
  EXPECT_EQ(caller.served_calls, 0U);
  EXPECT_EQ(caller.references, 1U);
  EXPECT_EQ(caller.contexts, 0U);
  EXPECT_EQ(open.result().error().code(), Errc::shut_down);
  EXPECT_EQ(cluster_[0].stop().calls, 0U);
  const StopReport callee = cluster_[1].stop();
  EXPECT_EQ(callee.calls, 0U);
  EXPECT_EQ(callee.served_calls, 1U);
  const StopReport idle = cluster_[2].stop();
  EXPECT_EQ(idle.calls + idle.served_calls + idle.references + idle.contexts, 0U);
}

TEST_P(Calls, H8_ACallThatWasAnsweredIsNotGivenUpForOneThatItLeftBehind) {
  const RRef<Drawer> drawer = cluster_[0].remote<Drawer>("c");
  EXPECT_EQ(cluster_[0].rpc_sync<&begins_never>("b", drawer), 1);
  cluster_.run_until_idle();
  const StopReport report = cluster_[1].stop();
  EXPECT_EQ(report.calls, 1U);
  EXPECT_EQ(report.served_calls, 0U);
}

}  // namespace
}  // namespace caftan::calls_test
