// Barriers and all_gather among the members of a job, by the rows of docs/protocols/gather.md (GA-1 to GA-9) and those
// of the conformance list about all-gather and barrier, 02.01 to 02.05.
#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caftan/rpc/wait.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "rref_roles.hpp"

namespace caftan::test::gather_test {
namespace {

using namespace std::chrono_literals;

using Names = std::vector<std::string>;

std::map<std::string, int> visits;  // by worker
int visit(Worker& worker) { return ++visits[worker.name()]; }
int visits_of(Worker& worker) { return visits[worker.name()]; }
/// Takes a while: as much computing as a call of the original's test.
double heavy(const at::Tensor& tensor) {
  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += (tensor * i).numel();
  return sum;
}
/// Enters a barrier of all members in a function: it gives its runner to others meanwhile.
int barrier_inside(Worker& worker) { return worker.try_barrier() ? 1 : 0; }
int barrier_in_brief(Worker& worker) { return static_cast<int>(worker.try_barrier().error().code()); }

/// A value whose encoding takes as long as the test says.
struct Slow {
  static inline std::function<void()> while_encoding;
  int value = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    if (std::is_same_v<Archive, wire::OutArchive> && while_encoding) while_encoding();
    archive& value;
  }
};

Registry make_registry() {
  Registry registry = make_rref_registry();
  registry.add<&visit>("visit");
  registry.add<&visits_of>("visits_of");
  registry.add<&heavy>("heavy");
  registry.add<&barrier_inside>("barrier_inside");
  registry.add<&barrier_in_brief>("barrier_in_brief", brief);
  return registry;
}

class Gathering : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Gathering() { visits.clear(); }
  /// Each worker enters the barrier of `members` in turn; none waits for it yet.
  std::vector<Future<void>> enter(const std::vector<std::size_t>& workers, const Names& members = {}) {
    std::vector<Future<void>> entered;
    for (const std::size_t id : workers) entered.push_back(cluster_[id].barrier_async(members));
    return entered;
  }

  Gate gate_;
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2", "worker3"}, make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Gathering, ::testing::Range<std::uint64_t>(1, 9));

TEST_P(Gathering, Row02_01_WaitForAllWorkersTwiceWithUnevenLoad) {
  for (int round = 0; round < 2; ++round) {
    std::vector<Future<void>> idle = enter({1, 2, 3});
    for (const std::string to : {"worker1", "worker2"}) {
      std::vector<Future<double>> calls;
      for (int i = 0; i < 30; ++i) calls.push_back(cluster_[0].rpc_async<&heavy>(to, at::full({100}, 1.0)));
      EXPECT_EQ(wait_all(calls).size(), 30U) << "they serve while they wait";
    }
    cluster_.run_until_idle();
    for (const Future<void>& one : idle) EXPECT_FALSE(one.ready()) << "worker0 has not entered";
    cluster_[0].barrier();
    wait_all(idle);
  }
}

TEST_P(Gathering, Row02_02_AllGatherGivesEachWorkerTheValuesOfAllByName) {
  std::vector<Future<std::map<std::string, int>>> all;
  for (std::size_t id = 0; id < 4; ++id) all.push_back(cluster_[id].all_gather_async(static_cast<int>(10 * id)));
  const std::map<std::string, int> expected{{"worker0", 0}, {"worker1", 10}, {"worker2", 20}, {"worker3", 30}};
  for (auto& one : all) EXPECT_EQ(one.get(), expected);
}

TEST_P(Gathering, Row02_03_GA10_ATimeoutOfAllGatherNamesTheOthersAndTheLimit) {
  auto first = cluster_[0].with({.timeout = 100ms}).all_gather_async(Slow{1});
  std::vector<Future<std::map<std::string, Slow>>> others;
  // Encoding at the others takes half a second, in which the time of worker0 is over.
  Slow::while_encoding = [this] { cluster_.advance(500ms); };
  for (const std::size_t id : {1, 2, 3})
    others.push_back(cluster_[id].with({.timeout = 100ms}).all_gather_async(Slow{2}));
  Slow::while_encoding = nullptr;
  ASSERT_TRUE(first.ready());
  EXPECT_EQ(first.result().error().code(), Errc::timeout);
  EXPECT_EQ(first.result().error().text(), "all_gather: worker1, worker2, worker3 have not called it within 100ms");
  cluster_.advance(1s);
  EXPECT_EQ(others[0].result().error().code(), Errc::timeout);
  EXPECT_EQ(others[1].result().error().code(), Errc::timeout);
}

TEST_P(Gathering, Row02_04_ABarrierOfAllWorkers) {
  EXPECT_EQ(cluster_[0].rpc_sync<&visits_of>("worker0"), 0);
  std::vector<Future<void>> entered = enter({0, 1, 2, 3});
  wait_all(entered);
  for (std::size_t id = 0; id < 4; ++id) {
    cluster_[id].rpc_sync<&visit>("worker0");
    entered[id] = cluster_[id].barrier_async();
  }
  wait_all(entered);
  for (std::size_t id = 0; id < 4; ++id) EXPECT_EQ(cluster_[id].rpc_sync<&visits_of>("worker0"), 4);
}

TEST_P(Gathering, Row02_05_DisjointSetsAtOnce) {
  const std::array<Names, 2> sets{Names{"worker0", "worker2"}, Names{"worker3", "worker1"}};
  std::vector<Future<void>> even = enter({0, 2}, sets[0]);
  std::vector<Future<void>> odd = enter({1}, sets[1]);
  wait_all(even);
  EXPECT_FALSE(odd[0].ready()) << "worker3 has not entered its own";
  for (const std::size_t id : {0, 2}) cluster_[id].rpc_sync<&visit>("worker0");
  for (const std::size_t id : {1, 3}) cluster_[id].rpc_sync<&visit>("worker1");
  odd.push_back(cluster_[3].barrier_async(sets[1]));
  wait_all(odd);
  even = enter({2, 0}, sets[0]);
  wait_all(even);
  EXPECT_EQ(visits["worker0"], 2);
  EXPECT_EQ(visits["worker1"], 2);
}

TEST_P(Gathering, GA1_OverlappingSetsDoNotDisturbEachOther) {
  const Names three{"worker0", "worker1", "worker2"};
  auto wide = cluster_[0].all_gather_async(std::string("wide"));
  auto narrow = cluster_[0].all_gather_async(1, three);
  EXPECT_EQ(cluster_[1].all_gather_async(2, {"worker2", "worker0", "worker1"}).ready(), false) << "in any order";
  auto third = cluster_[2].all_gather_async(3, three);
  EXPECT_EQ(narrow.get(), (std::map<std::string, int>{{"worker0", 1}, {"worker1", 2}, {"worker2", 3}}));
  EXPECT_EQ(third.get().size(), 3U);
  EXPECT_FALSE(wide.ready());
  for (const std::size_t id : {1, 2, 3}) cluster_[id].all_gather_async(std::string("w")).forget();
  EXPECT_EQ(wide.get().at("worker0"), "wide");
}

TEST_P(Gathering, GA1_ValuesWithTensors) {
  std::vector<Future<std::map<std::string, std::vector<at::Tensor>>>> all;
  for (std::size_t id = 0; id < 4; ++id) {
    all.push_back(cluster_[id].all_gather_async(std::vector<at::Tensor>{at::full({50'000}, static_cast<double>(id))}));
  }
  for (auto& one : all) {
    const auto values = one.get();
    EXPECT_TRUE(values.at("worker3").at(0).equal(at::full({50'000}, 3.0)));
  }
}

TEST_P(Gathering, GA2_AWorkerMayStopAsSoonAsItIsThrough) {
  std::vector<Future<void>> entered = enter({0, 1, 2, 3});
  while (!entered[2].ready()) ASSERT_TRUE(cluster_.executor().step());
  cluster_[2].stop();
  cluster_.run_until_idle();
  for (Future<void>& one : entered) EXPECT_TRUE(one.result()) << one.result().error();
}

TEST_P(Gathering, GA4_ALostMemberIsNamedAtAllOthers) {
  std::vector<Future<void>> entered = enter({0, 1, 2});
  cluster_.run_until_idle();
  cluster_.network().kill("worker3");
  cluster_.run_until_idle();
  for (Future<void>& one : entered) {
    ASSERT_TRUE(one.ready());
    EXPECT_EQ(one.result().error().code(), Errc::peer_down);
    EXPECT_EQ(one.result().error().worker(), "worker3");
  }
  EXPECT_EQ(cluster_[0].try_barrier().error().worker(), "worker3") << "and every later call";
  std::vector<Future<void>> without = enter({0, 1, 2}, {"worker0", "worker1", "worker2"});
  wait_all(without);
}

TEST_P(Gathering, GA5_AfterATimeoutTheNextCallGoesOnWithTheRound) {
  EXPECT_EQ(cluster_[0].with({.timeout = 1s}).try_barrier().error().code(), Errc::timeout);
  std::vector<Future<void>> entered = enter({1, 2, 3});
  cluster_.run_until_idle();
  wait_all(entered);
  cluster_[0].barrier();
  entered = enter({0, 1, 2, 3});
  wait_all(entered);
}

TEST_P(Gathering, GA5_ACancelledCallLeavesItsRoundOpen) {
  Future<void> entered = cluster_[0].barrier_async();
  auto gathered = cluster_[1].all_gather_async(1);
  EXPECT_TRUE(entered.cancel());
  EXPECT_TRUE(gathered.cancel());
  cluster_.run_until_idle();
}

TEST_P(Gathering, GA8_ASecondCallOfTheSameMembersIsRefused) {
  Future<void> entered = cluster_[0].barrier_async();
  EXPECT_EQ(cluster_[0].try_barrier().error().code(), Errc::overloaded);
  EXPECT_EQ(cluster_[0].try_all_gather(1, {"worker3", "worker2", "worker1", "worker0"}).error().code(),
            Errc::overloaded);
  for (const std::size_t id : {1, 2, 3}) cluster_[id].barrier_async().forget();
  entered.get();
}

TEST_P(Gathering, GA8_InAFunctionItGivesItsRunnerToOthersAndInABriefOneItIsRefused) {
  Future<int> inside = cluster_[0].rpc_async<&barrier_inside>("worker1");
  std::vector<Future<void>> entered = enter({0, 2, 3});
  wait_all(entered);
  EXPECT_EQ(inside.get(), 1);
  EXPECT_EQ(cluster_[0].rpc_sync<&barrier_in_brief>("worker1"), static_cast<int>(Errc::would_deadlock));
}

TEST_P(Gathering, GA9_AValueOfAnotherTypeIsNamed) {
  auto number = cluster_[0].all_gather_async(1, {"worker0", "worker1"});
  auto text = cluster_[1].all_gather_async(std::string("one"), {"worker0", "worker1"});
  const auto refused = number.result();
  EXPECT_EQ(refused.error().code(), Errc::wrong_type);
  EXPECT_EQ(refused.error().worker(), "worker1");
  EXPECT_EQ(text.result().error().worker(), "worker0");
  auto barrier = cluster_[0].barrier_async({"worker0", "worker1"});
  cluster_[1].all_gather_async(2, {"worker0", "worker1"}).forget();
  EXPECT_EQ(barrier.result().error().code(), Errc::wrong_type);
}

TEST_P(Gathering, MembersThatCannotBeAreRefusedBeforeAnythingIsSent) {
  const std::size_t before = cluster_.network().count(wire::FrameKind::call);
  EXPECT_EQ(cluster_[0].try_barrier({"worker0", "nowhere"}).error().code(), Errc::unknown_worker);
  EXPECT_EQ(cluster_[0].try_barrier({"worker0", "worker1", "worker1"}).error().text(),
            "barrier: worker1 is a member twice");
  EXPECT_EQ(cluster_[0].try_barrier({"worker1", "worker2"}).error().text(),
            "barrier: this worker, worker0, is not among the members");
  EXPECT_EQ(cluster_[0].with({.timeout = -1s}).try_barrier().error().code(), Errc::bad_arguments);
  EXPECT_EQ(cluster_[0].try_all_gather(cluster_[0].make_rref(1)).error().code(), Errc::unsupported);
  EXPECT_EQ(cluster_.network().count(wire::FrameKind::call), before);
  EXPECT_EQ(cluster_[0].all_gather(5, {"worker0"}), (std::map<std::string, int>{{"worker0", 5}})) << "alone";
}

TEST_P(Gathering, StoppingEndsTheCallWithShutDown) {
  Future<void> entered = cluster_[0].barrier_async();
  cluster_.run_until_idle();
  cluster_[0].stop();
  EXPECT_EQ(entered.result().error().code(), Errc::shut_down);
  EXPECT_EQ(cluster_[0].try_barrier().error().code(), Errc::shut_down);
}

}  // namespace
}  // namespace caftan::test::gather_test
