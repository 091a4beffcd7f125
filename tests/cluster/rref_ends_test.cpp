// References that are dropped as quickly as others are made: their ends keep up, however the runners are busy.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <caf/send.hpp>

#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "rref_handles.hpp"
#include "rref_host.hpp"
#include "rref_roles.hpp"
#include "worker_core.hpp"

namespace caftan::test {
namespace {

TEST(RRefEnds, K6_KeepUpWithCreationsOverSockets) {
  const Folder folder;
  const std::vector<WorkerAddress> world{{"a", "unix:" + (folder / "a")}, {"b", "unix:" + (folder / "b")}};
  std::vector<std::unique_ptr<Worker>> workers;
  for (const WorkerAddress& member : world) {
    WorkerOptions options;
    options.name = member.name;
    options.world = world;
    options.limits.pending_calls = 200'000;
    options.executor =
        std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 2});
    workers.push_back(Worker::launch(std::move(options), make_rref_registry()).value());
  }
  for (const auto& worker : workers) worker->wait_until_ready().value();
  const Peer b = workers[0]->peer("b");
  std::size_t most = 0;
  for (int i = 0; i < 40'000; ++i) {
    (void)workers[0]->remote<Counter>(b, i);
    if (i % 500 != 499) continue;
    workers[0]->rpc_sync<&add>(b, 1, 2);
    most = std::max({most, workers[0]->counters().user_rrefs, workers[1]->counters().owner_rrefs});
  }
  EXPECT_LE(most, 12'000U);
  for (const auto& worker : workers) worker->stop();
}

class RRefEndsInOrder : public testing::TestWithParam<std::uint64_t> {
 protected:
  Cluster cluster_{GetParam(), {"worker0", "worker1"}, make_rref_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, RRefEndsInOrder, testing::Range<std::uint64_t>(1, 6));

TEST_P(RRefEndsInOrder, T14_SettlingWaitsForThoseThatWereLetGoOnly) {
  actors::RRefHost& host = cluster_[0].core().rref_host();
  RRef<int> kept = cluster_[0].remote<&add>("worker1", 1, 2);
  RRef<int> killed = cluster_[0].remote<&add>("worker1", 1, 2);
  cluster_.settle();
  bool settled = false;
  host.when_settled([&] { settled = true; });
  EXPECT_TRUE(settled) << "all have handles";
  for (int i = 0; i < 20; ++i) (void)cluster_[0].remote<&add>("worker1", i, 0);
  settled = false;
  host.when_settled([&] { settled = true; });
  EXPECT_FALSE(settled);
  cluster_.settle();
  EXPECT_TRUE(settled);

  // An actor that ends before its handle leaves nothing to wait for, and neither does the handle afterwards.
  caf::anon_send_exit(dynamic_cast<const actors::UserHandle&>(*killed.handle()).actor(), caf::exit_reason::kill);
  cluster_.settle();
  killed = {};
  cluster_.settle();
  settled = false;
  host.when_settled([&] { settled = true; });
  EXPECT_TRUE(settled);
  kept = {};
  settled = false;
  host.when_settled([&] { settled = true; });
  EXPECT_FALSE(settled);
  cluster_.settle();
  EXPECT_TRUE(settled);
}

}  // namespace
}  // namespace caftan::test
