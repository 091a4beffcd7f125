// Calls that wait inside functions, more than there may be threads: they fail, and nothing hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "caftan/actors/worker.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"

namespace caftan::runner_limit_test {
namespace {

std::string other_than(const Worker& worker) { return worker.name() == "a" ? "b" : "a"; }

/// Calls itself at the other worker `depth` times, each call inside of the one before. Returns how many calls were
/// made.
int nest(Worker& worker, int depth) {
  return depth == 0 ? 0 : 1 + worker.rpc_sync<&nest>(other_than(worker), depth - 1);
}

/// A call that gets no reply.
struct Unanswered {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Promise<int>> promises;
} unanswered;
Future<int> never() {
  const std::lock_guard lock(unanswered.mutex);
  unanswered.changed.notify_all();
  return unanswered.promises.emplace_back().future();
}
std::atomic<int> counted = 0;
int count() { return ++counted; }
int counted_so_far() { return counted; }
int relay(Worker& worker) { return worker.rpc_sync<&never>(other_than(worker)); }
int relay_all(Worker& worker) {
  std::vector<Future<int>> answers;
  answers.push_back(worker.rpc_async<&never>(other_than(worker)));
  return wait_all(answers).front();
}
int relay_any(Worker& worker) {
  std::vector<Future<int>> answers;
  answers.push_back(worker.rpc_async<&never>(other_than(worker)));
  return std::move(answers[wait_any(answers).value()]).get();
}
int relay_fetch(Worker& worker) { return worker.remote<&never>(other_than(worker)).to_here(); }

Registry make_registry() {
  Registry registry;
  registry.add<&nest>("nest");
  registry.add<&never>("never");
  registry.add<&count>("count");
  registry.add<&counted_so_far>("counted_so_far", brief);
  registry.add<&relay>("relay");
  registry.add<&relay_all>("relay_all");
  registry.add<&relay_any>("relay_any");
  registry.add<&relay_fetch>("relay_fetch");
  return registry;
}

/// Two workers with one executor ("loopback"), or each with its own and such a channel between them ("shm", "unix").
class TwoWorkers {
 protected:
  TwoWorkers(const std::string& kind, const transport::ThreadedExecutor::Options& threads) {
    const bool loopback = kind == "loopback";
    const auto network = std::make_shared<LocalNetwork>();
    std::vector<WorkerAddress> world{{"a", ""}, {"b", ""}};
    if (!loopback) {
      for (auto& member : world) member.address = kind + ":" + (folder_ / member.name);
    }
    std::shared_ptr<transport::ThreadedExecutor> executor;
    for (const auto& member : world) {
      if (!executor || !loopback) executor = std::make_shared<transport::ThreadedExecutor>(threads);
      WorkerOptions options;
      options.name = member.name;
      options.world = world;
      options.secret = "shared by this test";
      options.executor = executor;
      if (loopback) options.network = network;
      workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }
  ~TwoWorkers() {
    const std::lock_guard lock(unanswered.mutex);
    unanswered.promises.clear();
  }

  test::Folder folder_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

struct LimitCase {
  const char* kind;
  int deepest;  // depth at which 3 of 4 threads wait, in one executor or in two
};

class RunnerLimit : public ::testing::TestWithParam<LimitCase>, protected TwoWorkers {
 protected:
  RunnerLimit() : TwoWorkers(GetParam().kind, {.runners = 1, .max_threads = 4}) {}
};
INSTANTIATE_TEST_SUITE_P(Kinds, RunnerLimit,
                         ::testing::Values(LimitCase{"loopback", 3}, LimitCase{"shm", 6}, LimitCase{"unix", 6}),
                         [](const auto& info) { return std::string(info.param.kind); });

const Error& root_of(const Error& error) { return error.cause() ? root_of(*error.cause()) : error; }

TEST_P(RunnerLimit, ACallTooDeepIsOverloaded) {
  const int deepest = GetParam().deepest;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(workers_[0]->rpc_sync<&nest>("b", deepest), deepest);
    const auto result = workers_[0]->try_rpc_sync<&nest>("b", deepest + 1);
    ASSERT_FALSE(result);
    EXPECT_EQ(root_of(result.error()).code(), Errc::overloaded) << result.error().message();
    EXPECT_EQ(
        root_of(result.error()).text(),
        "3 runners wait already; the limit is ThreadedExecutor::Options::max_threads = 4, one of them stays free");
  }
}

TEST_P(RunnerLimit, DeadlinesPassHoweverManyCallsWait) {
  using namespace std::chrono_literals;
  std::vector<Future<int>> calls;
  const auto caller = workers_[0]->with({.timeout = 50ms});
  for (int i = 0; i < 4; ++i) {
    calls.push_back(caller.rpc_async<&relay>("b"));
    calls.push_back(caller.rpc_async<&relay_all>("b"));
    calls.push_back(caller.rpc_async<&relay_any>("b"));
    calls.push_back(caller.rpc_async<&relay_fetch>("b"));
  }
  for (Future<int>& call : calls) {
    const auto result = std::move(call).result();
    ASSERT_FALSE(result);
    const Errc root = root_of(result.error()).code();
    EXPECT_TRUE(root == Errc::timeout || root == Errc::overloaded) << result.error().message();
  }
  EXPECT_EQ(workers_[0]->rpc_sync<&nest>("b", 0), 0);
}

constexpr unsigned kThreads = 32;

class Burst : public ::testing::TestWithParam<const char*>, protected TwoWorkers {
 protected:
  Burst() : TwoWorkers(GetParam(), {.runners = 2, .max_threads = kThreads}) {}
};
INSTANTIATE_TEST_SUITE_P(Kinds, Burst, ::testing::Values("loopback", "shm", "unix"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Burst, H10_CALL16_NestedCallsBeginBeforeOnesThatWouldWaitForThem) {
  std::vector<Future<int>> calls;
  for (int i = 0; i < 300; ++i) calls.push_back(workers_[0]->rpc_async<&nest>("b", 3));
  for (Future<int>& call : calls) {
    const auto result = std::move(call).result();
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ(*result, 3);
  }
}

TEST_P(Burst, H10_CALL19_AHeldBackCallEndsByItsTimeoutThatNamesTheLimitAndDoesNotRun) {
  // 12 of the 31 permits to wait are kept for nested calls: once 19 relays wait, later calls are held back.
  constexpr std::size_t kBegun = kThreads - 1 - 12;
  counted = 0;
  std::vector<Future<int>> relays;
  for (std::size_t i = 0; i < kBegun; ++i) relays.push_back(workers_[0]->rpc_async<&relay>("b"));
  {
    std::unique_lock lock(unanswered.mutex);
    unanswered.changed.wait(lock, [] { return unanswered.promises.size() == kBegun; });
  }
  const auto late = workers_[0]->with({.timeout = std::chrono::milliseconds(50)}).try_rpc_sync<&count>("b");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_NE(late.error().text().find("until fewer calls wait there (max_threads bounds them)"), std::string::npos)
      << late.error().text();
  EXPECT_EQ(workers_[0]->rpc_sync<&counted_so_far>("b"), 0) << "b has read that the call was given up";
  {
    const std::lock_guard lock(unanswered.mutex);
    for (Promise<int>& promise : unanswered.promises) promise.set(7);
  }
  for (Future<int>& call : relays) EXPECT_EQ(std::move(call).result().value(), 7);
  EXPECT_EQ(workers_[0]->rpc_sync<&count>("b"), 1) << "only this one has run";
}

}  // namespace
}  // namespace caftan::runner_limit_test
