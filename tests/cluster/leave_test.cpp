// Workers that leave together: not before all have asked to and all calls have ended (LV-1 to LV-8). Workers that lose
// one of them and go on (RN-15 to RN-17).
#include <array>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "caftan/run/internal/supervisor.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "rref_roles.hpp"

namespace caftan::test::leave_test {
namespace {

using namespace std::chrono_literals;

int leave_inside(Worker& worker) { return static_cast<int>(worker.leave_together(1s).error().code()); }

Registry make_registry() {
  Registry registry = make_rref_registry();
  registry.add<&leave_inside>("leave_inside");
  return registry;
}

class Leaving : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  /// Lets worker number `id` call leave_together in a task of its own.
  void leave(std::size_t id) {
    outcomes_[id].reset();
    cluster_.executor().post([this, id] { outcomes_[id] = cluster_[id].leave_together(30s); });
  }
  void leave_all() {
    for (std::size_t id = 0; id < outcomes_.size(); ++id) leave(id);
  }
  bool is_over(std::size_t id) const { return outcomes_[id] && *outcomes_[id]; }
  bool all_over() const { return is_over(0) && is_over(1) && is_over(2); }
  Error error(std::size_t id) const { return outcomes_[id] && !*outcomes_[id] ? outcomes_[id]->error() : Error(); }

  Gate gate_;
  std::array<std::optional<Result<void>>, 3> outcomes_;
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Leaving, ::testing::Range<std::uint64_t>(1, 21));

TEST_P(Leaving, LV1_ReturnsWhenAllHaveCalledItAndAllCallsHaveEnded) {
  leave(0);
  leave(1);
  cluster_.run_until_idle();
  EXPECT_FALSE(outcomes_[0] || outcomes_[1]) << "worker2 has not called it";
  EXPECT_EQ(cluster_[2].rpc_sync<&add>("worker0", 1, 2), 3) << "it is served meanwhile";
  Future<int> under_way = cluster_[2].rpc_async<&wait_for_gate>("worker1", 4);
  leave(2);
  cluster_.run_until_idle();
  EXPECT_FALSE(outcomes_[0] || outcomes_[1] || outcomes_[2]) << "a call is under way";
  gate_.open();
  cluster_.run_until_idle();
  EXPECT_TRUE(all_over()) << error(0) << "; " << error(1) << "; " << error(2);
  EXPECT_TRUE(under_way.ready());
  EXPECT_EQ(under_way.get(), 4);
}

TEST_P(Leaving, LV1_CallsThatBeginCallsEndFirst) {
  for (std::size_t id = 0; id < 3; ++id) {
    cluster_[id]
        .rpc_async<&make_at>("worker" + std::to_string((id + 1) % 3), "worker" + std::to_string((id + 2) % 3), 5)
        .then([](Result<RRef<int>> made) { return made.value().fetch(); })
        .forget();
  }
  leave_all();
  cluster_.run_until_idle();
  EXPECT_TRUE(all_over()) << error(0) << "; " << error(1) << "; " << error(2);
  EXPECT_EQ(live(cluster_, 3), "0/0 0/0 0/0") << "released references have ended";
}

TEST_P(Leaving, LV2_AWorkerMayStopAsSoonAsItReturns) {
  leave_all();
  std::size_t first = 0;
  while (!outcomes_[0] && !outcomes_[1] && !outcomes_[2]) ASSERT_TRUE(cluster_.executor().step());
  while (!outcomes_[first]) ++first;
  cluster_[first].stop();
  cluster_.run_until_idle();
  EXPECT_TRUE(all_over()) << error(0) << "; " << error(1) << "; " << error(2);
}

TEST_P(Leaving, LV3_LV6_TheDeadlineNamesWhoIsMissingAndTheCallCanBeRepeated) {
  leave(0);
  leave(1);
  cluster_.run_until_idle();
  cluster_.executor().advance(30s);
  for (const std::size_t id : {0, 1}) {
    EXPECT_EQ(error(id).code(), Errc::timeout);
    EXPECT_EQ(error(id).text(), "leave_together: worker2 has not called it within 30s");
  }
  leave_all();
  cluster_.run_until_idle();
  EXPECT_TRUE(all_over()) << error(0) << "; " << error(1) << "; " << error(2);
}

TEST_P(Leaving, LV4_AWorkerThatHasLeftAloneIsNamed) {
  leave(0);
  cluster_.run_until_idle();
  cluster_[2].stop();
  cluster_.run_until_idle();
  EXPECT_EQ(error(0).code(), Errc::peer_down);
  EXPECT_EQ(error(0).worker(), "worker2");
  leave(1);
  cluster_.run_until_idle();
  EXPECT_EQ(error(1).worker(), "worker2");
}

TEST_P(Leaving, LV8_IsRefusedWhereItCouldNotEnd) {
  EXPECT_EQ(cluster_[0].leave_together(-1s).error().code(), Errc::bad_arguments);
  EXPECT_EQ(cluster_[1].rpc_sync<&leave_inside>("worker0"), static_cast<int>(Errc::would_deadlock));
  leave(0);
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[0].leave_together(1s).error().code(), Errc::overloaded);
  cluster_[0].stop();
  cluster_.run_until_idle();
  EXPECT_EQ(error(0).code(), Errc::shut_down);
  EXPECT_EQ(cluster_[0].leave_together().error().code(), Errc::shut_down);
}

/// A run of three workers: the first one drives, the other two may be lost. A Supervisor stands for the launcher.
class Losing : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Losing() {
    for (std::size_t worker = 0; worker < 3; ++worker) {
      run_.ready(worker);
      run_.made(worker);
    }
    EXPECT_TRUE(run_.next(cluster_.now()).empty());
  }
  static run::SupervisorOptions supervised() {
    run::SupervisorOptions options{.start_timeout = 10s, .stop_timeout = 1h};
    for (int id = 0; id < 3; ++id) {
      options.workers.push_back(
          {.name = "worker" + std::to_string(id), .process = id, .drives = id == 0, .may_be_lost = id != 0});
    }
    return options;
  }
  void report(const std::string& reporter, const std::string& peer, const Error& reason) {
    run_.peer_lost(static_cast<std::size_t>(reporter.back() - '0'), peer, reason, cluster_.now());
  }
  /// The run() of worker0 has returned: both that are left leave, and give nothing up for the third one.
  void end_without_worker2() {
    EXPECT_EQ(cluster_[0].rpc_sync<&add>("worker1", 3, 4), 7);
    run_.returned(0, {});
    EXPECT_EQ(run_.next(cluster_.now()), std::vector{run::Supervisor::Action::leave});
    for (const std::size_t id : {0, 1}) {
      const StopReport given_up = cluster_[id].stop();
      EXPECT_EQ(given_up.calls + given_up.served_calls + given_up.references, 0U) << id;
      run_.left(id);
      run_.died(static_cast<int>(id), {false, 0}, "", cluster_.now());
    }
    EXPECT_TRUE(run_.next(cluster_.now()).empty());
    EXPECT_TRUE(run_.is_over());
    EXPECT_EQ(run_.verdict().exit_code, 0);
    ASSERT_EQ(run_.losses().size(), 1U);
    EXPECT_EQ(run_.losses().front().worker, 2U);
  }

  Gate gate_;
  // Declared before cluster_: the workers report to it until they have ended.
  run::Supervisor run_{supervised(), base::ManualClock().now()};
  testing::Cluster cluster_{
      GetParam(), {"worker0", "worker1", "worker2"}, make_registry, [this](WorkerOptions& options) {
        options.on_peer_down = [this, name = options.name](const std::string& peer, const Error& reason) {
          report(name, peer, reason);
        };
      }};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Losing, ::testing::Range<std::uint64_t>(1, 11));

TEST_P(Losing, RN15_RN16_CallsToALostWorkerFailTheOthersGoOn) {
  Future<int> lost = cluster_[0].rpc_async<&wait_for_gate>("worker2", 1);
  Future<int> other = cluster_[0].rpc_async<&wait_for_gate>("worker1", 2);
  cluster_.run_until_idle();
  cluster_.network().kill("worker2");
  run_.died(2, {true, 9}, "", cluster_.now());
  cluster_.run_until_idle();
  ASSERT_TRUE(lost.ready());
  const auto outcome = std::move(lost).result();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Errc::peer_down);
  EXPECT_EQ(outcome.error().worker(), "worker2");
  EXPECT_FALSE(other.ready());
  cluster_.advance(2s);
  EXPECT_TRUE(run_.next(cluster_.now()).empty()) << "the reports of the same loss are its echo";
  gate_.open();
  EXPECT_EQ(std::move(other).result().value(), 2);
  end_without_worker2();
}

TEST_P(Losing, RN16_OfTwoThatLostEachOtherTheOneThatMayBeLostIsGivenUp) {
  cluster_.network().break_off("worker0", "worker2");
  cluster_.run_until_idle();
  EXPECT_TRUE(run_.next(cluster_.now()).empty());
  cluster_.advance(1s);
  EXPECT_TRUE(run_.next(cluster_.now()).empty());
  ASSERT_EQ(run_.take_losses().size(), 1U);
  cluster_.network().break_off("worker1", "worker2");  // the launcher kills it
  cluster_.run_until_idle();
  end_without_worker2();
}

TEST(LeavingOnThreads, LV1_TwoWorkersLeaveTogether) {
  const auto executor = std::make_shared<transport::ThreadedExecutor>();
  const auto network = std::make_shared<LocalNetwork>();
  std::vector<std::unique_ptr<Worker>> workers;
  for (const char* name : {"a", "b"}) {
    WorkerOptions options;
    options.name = name;
    options.world = {{"a", ""}, {"b", ""}};
    options.executor = executor;
    options.network = network;
    workers.push_back(Worker::launch(std::move(options), make_rref_registry()).value());
  }
  for (const auto& worker : workers) worker->wait_until_ready().value();
  auto b = std::async(std::launch::async, [&] {
    (void)workers[1]->rpc_sync<&add>("a", 1, 2);
    return workers[1]->leave_together();
  });
  const Result<void> a = workers[0]->leave_together();
  EXPECT_TRUE(a) << a;
  const Result<void> other = b.get();
  EXPECT_TRUE(other) << other;
}

}  // namespace
}  // namespace caftan::test::leave_test
