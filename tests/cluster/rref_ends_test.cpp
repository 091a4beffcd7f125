// References that are dropped as quickly as others are made: their ends keep up, however the runners are busy.
#include <future>
#include <string>

#include <gtest/gtest.h>
#include <caf/send.hpp>

#include "caftan/testing/cluster.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "channel_kind.hpp"
#include "folder.hpp"
#include "rref/rref_handles.hpp"
#include "rref/rref_host.hpp"
#include "rref_roles.hpp"
#include "worker/worker_core.hpp"

namespace caftan::test::rref_ends_test {
namespace {

/// Two workers over a socket, each with a runner of its own.
struct RunnersOfTheirOwn {
  RunnersOfTheirOwn() {
    const std::vector<WorkerAddress> world{{"a", test::path_scheme() + (folder / "a")},
                                           {"b", test::path_scheme() + (folder / "b")}};
    for (const WorkerAddress& member : world) {
      WorkerOptions options;
      options.name = member.name;
      options.world = world;
      executors.push_back(
          std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1}));
      options.executor = executors.back();
      workers.push_back(Worker::launch(std::move(options), make_rref_registry()).value());
    }
    for (const auto& worker : workers) worker->wait_until_ready().value();
  }
  ~RunnersOfTheirOwn() {
    for (const auto& worker : workers) worker->stop();
  }

  const Folder folder;
  std::vector<std::shared_ptr<transport::ThreadedExecutor>> executors;
  std::vector<std::unique_ptr<Worker>> workers;
};

TEST(RRefEnds, K6_CreationsWaitForThemWhileTheRunnersAreBusy) {
  RunnersOfTheirOwn two;
  Worker& a = *two.workers[0];
  const Peer b = a.peer("b");
  // The only runner of `a`, which would end references, is busy; replies are read by the thread that waits for them.
  std::promise<void> free;
  std::promise<void> busy;
  two.executors[0]->post([&busy, may_go_on = free.get_future().share()] {
    busy.set_value();
    may_go_on.wait();
  });
  busy.get_future().wait();
  int made = 0;
  Result<RRef<Counter>> last = Error();
  do {
    last = a.with({.timeout = std::chrono::milliseconds(200)}).try_remote<Counter>(b, made);
    if (last) last = RRef<Counter>();
    ++made;
    if (made % 500 == 0) a.rpc_sync<&add>(b, 1, 2);  // the reply comes behind those of all creations before it
  } while (last && made < 20'000);
  ASSERT_FALSE(last) << "all " << made << " of them pile up";
  EXPECT_EQ(last.error().code(), Errc::timeout);
  EXPECT_LE(a.counters().user_rrefs, 5000U);
  free.set_value();
  EXPECT_TRUE(a.try_remote<Counter>(b, 1)) << "waits until the runner has ended enough of them";
}

class RRefEndsInOrder : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1"}, make_rref_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, RRefEndsInOrder, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(RRefEndsInOrder, T14_SettlingWaitsForThoseThatWereLetGoOnly) {
  actors::RRefHost& host = actors::WorkerCore::of(cluster_[0]).rref_host();
  RRef<int> kept = cluster_[0].remote<&add>("worker1", 1, 2);
  RRef<int> killed = cluster_[0].remote<&add>("worker1", 1, 2);
  cluster_.run_until_idle();
  bool quiet = false;
  host.ending().when_quiet([&] { quiet = true; });
  EXPECT_TRUE(quiet) << "all have handles";
  for (int i = 0; i < 20; ++i) (void)cluster_[0].remote<&add>("worker1", i, 0);
  quiet = false;
  host.ending().when_quiet([&] { quiet = true; });
  EXPECT_FALSE(quiet);
  cluster_.run_until_idle();
  EXPECT_TRUE(quiet);

  // when_quiet waits neither for an actor that was killed before its handle ended, nor for the end of that handle.
  caf::anon_send_exit(dynamic_cast<const actors::UserHandle&>(*killed.handle()).actor(), caf::exit_reason::kill);
  cluster_.run_until_idle();
  killed = {};
  cluster_.run_until_idle();
  quiet = false;
  host.ending().when_quiet([&] { quiet = true; });
  EXPECT_TRUE(quiet);
  kept = {};
  quiet = false;
  host.ending().when_quiet([&] { quiet = true; });
  EXPECT_FALSE(quiet);
  cluster_.run_until_idle();
  EXPECT_TRUE(quiet);
}

}  // namespace
}  // namespace caftan::test::rref_ends_test
