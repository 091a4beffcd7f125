// Groups over real workers and threads. Both backends pass the same suite; what is of the backend `caftan` alone runs
// over a stepped cluster, in orders that a seed chooses.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/caftan.hpp"
#include "caftan/collectives/collectives.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/testing/cluster.hpp"
#include "group_threads.hpp"

namespace caftan::test::collectives_test {
namespace {

using namespace std::chrono_literals;
using collectives::Backend;
using collectives::Collectives;
using collectives::GroupOptions;
using collectives::Reduction;
using collectives::Tensors;
using ::testing::HasSubstr;

class BothBackends : public ::testing::TestWithParam<Backend> {
 protected:
  BothBackends() {
    if (GetParam() == Backend::gloo && !collectives::has_gloo()) has_ = false;
  }
  bool has_ = true;
};
INSTANTIATE_TEST_SUITE_P(Backends, BothBackends, ::testing::Values(Backend::caftan, Backend::gloo),
                         [](const auto& info) { return info.param == Backend::gloo ? "gloo" : "caftan"; });

#define CAFTAN_NEEDS_BACKEND \
  if (!has_) GTEST_SKIP() << "this build has no backend gloo (libgloo-dev)"

at::Tensor value_of(int rank, std::int64_t size) {
  return at::arange(size, at::kFloat).add(1).mul(0.1).mul(static_cast<double>(rank + 1) / 3.0);
}

TEST_P(BothBackends, CO4_AllHaveTheSameBitsOfASum) {
  CAFTAN_NEEDS_BACKEND;
  for (const int members : {1, 2, 3, 4}) {
    GroupThreads workers(members);
    const auto groups = workers.join(GetParam());
    for (const std::int64_t size : {1L, 1000L, 50001L}) {
      std::vector<at::Tensor> sums(groups.size()), means(groups.size());
      workers.each([&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        Future<Tensors> sum = groups[at]->all_reduce({value_of(rank, size)}, Reduction::sum);
        Future<Tensors> mean = groups[at]->all_reduce({value_of(rank, size)}, Reduction::mean);
        sums[at] = sum.get().front();
        means[at] = mean.get().front();
      });
      at::Tensor expected = at::zeros({size});
      for (int rank = 0; rank < members; ++rank) expected = expected + value_of(rank, size);
      for (std::size_t rank = 0; rank < groups.size(); ++rank) {
        EXPECT_TRUE(sums[rank].equal(sums[0])) << members << ' ' << size;
        EXPECT_TRUE(means[rank].equal(means[0])) << members << ' ' << size;
        EXPECT_TRUE(sums[rank].allclose(expected)) << members << ' ' << size;
        EXPECT_TRUE(means[rank].allclose(expected / members)) << members << ' ' << size;
      }
    }
  }
}

TEST_P(BothBackends, DtypesAndSizesOfAListStay) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(3);
  const auto groups = workers.join(GetParam());
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kLong, at::kInt}) {
    workers.each([&](int rank) {
      const Tensors given{at::full({2, 3}, rank, dtype), at::full({}, 1, dtype), at::zeros({0}, dtype)};
      const Tensors sums = groups[static_cast<std::size_t>(rank)]->all_reduce(given, Reduction::sum).get();
      ASSERT_EQ(sums.size(), 3U);
      EXPECT_TRUE(sums[0].equal(at::full({2, 3}, 3, dtype)));
      EXPECT_TRUE(sums[1].equal(at::full({}, 3, dtype)));
      EXPECT_EQ(sums[2].sizes(), at::IntArrayRef({0}));
    });
  }
}

TEST_P(BothBackends, ABroadcastGivesTheRootsValues) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(3);
  const auto groups = workers.join(GetParam());
  for (int root = 0; root < 3; ++root) {
    workers.each([&](int rank) {
      const Tensors mine{at::full({4}, rank), at::full({2, 2}, rank, at::kLong)};
      const Tensors got = groups[static_cast<std::size_t>(rank)]->broadcast(mine, root).get();
      EXPECT_TRUE(got[0].equal(at::full({4}, root)));
      EXPECT_TRUE(got[1].equal(at::full({2, 2}, root, at::kLong)));
      EXPECT_TRUE(mine[0].equal(at::full({4}, rank))) << "the arguments stay as they are";
    });
  }
}

TEST_P(BothBackends, AGatherReturnsWhatEachGaveByRank) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(3);
  const auto groups = workers.join(GetParam());
  workers.each([&](int rank) {
    Tensors own;
    for (int i = 0; i < rank; ++i) own.push_back(at::full({i + 1, 2}, rank, i == 0 ? at::kLong : at::kDouble));
    const auto all = groups[static_cast<std::size_t>(rank)]->all_gather(own).get();
    ASSERT_EQ(all.size(), 3U);
    EXPECT_TRUE(all[0].empty());
    ASSERT_EQ(all[2].size(), 2U);
    EXPECT_TRUE(all[1][0].equal(at::full({1, 2}, 1, at::kLong)));
    EXPECT_TRUE(all[2][1].equal(at::full({2, 2}, 2, at::kDouble)));
  });
}

TEST_P(BothBackends, ABarrierIsDoneWhenAllHaveCalledIt) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(2);
  const auto groups = workers.join(GetParam());
  Future<void> first = groups[0]->barrier();
  EXPECT_FALSE(first.wait_for(20ms));
  groups[1]->barrier().get();
  first.get();
}

TEST_P(BothBackends, GroupsOfOneProcessBeginOperationsAtOneTime) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(4);
  for (int round = 0; round < 10; ++round) {  // libtorch's list of process groups changes with the first one of each
    const auto groups = workers.join(GetParam());
    workers.each([&](int rank) { groups[static_cast<std::size_t>(rank)]->barrier().get(); });
  }
}

TEST_P(BothBackends, CodeThatWaitsForAnOperationMayBeginTheNext) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(1);  // alone: an operation may be over before its call returns
  const auto group = workers.join(GetParam()).front();
  for (int round = 0; round < 100; ++round) {
    Future<Tensors> second = group->all_reduce({at::ones({1})}, Reduction::sum).then([&](Result<Tensors> first) {
      return group->all_reduce(first.value(), Reduction::sum);
    });
    ASSERT_TRUE(second.wait_for(20s));
    EXPECT_EQ(std::move(second).get().front().item<double>(), 1.0);
  }
}

TEST_P(BothBackends, CO8_ALostMemberIsPeerDownAtAllOthers) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(4);
  auto groups = workers.join(GetParam());
  std::vector<Future<Tensors>> open;
  for (const int rank : {0, 1, 3}) {
    open.push_back(groups[static_cast<std::size_t>(rank)]->all_reduce({at::ones({3})}, Reduction::sum));
  }
  workers.stop(2);  // ends its sessions; the group of w2 sends nothing
  for (Future<Tensors>& future : open) {
    ASSERT_TRUE(future.wait_for(10s)) << "libtorch's own time-out is longer";
    const auto result = std::move(future).result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Errc::peer_down) << result.error().message();
    EXPECT_EQ(result.error().worker(), "w2");
  }
  EXPECT_EQ(groups[0]->barrier().result().error().code(), Errc::peer_down) << "CO-7: and what comes later";
}

TEST_P(BothBackends, CO9_AMemberThatLeftIsNamed) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(3);
  auto groups = workers.join(GetParam());
  workers.each([&](int rank) { groups[static_cast<std::size_t>(rank)]->barrier().get(); });
  Future<Tensors> open = groups[0]->all_reduce({at::ones({1})}, Reduction::sum);
  groups[1].reset();
  const auto result = std::move(open).result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::shut_down) << result.error().message();
  EXPECT_EQ(result.error().worker(), "w1");
}

TEST_P(BothBackends, CO10_AMemberThatNeverJoinsIsNamed) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(3);
  const auto joined = collectives::join_group(
      workers[0], {.name = "late", .members = workers.names(), .backend = GetParam(), .timeout = 50ms});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), Errc::timeout);
  EXPECT_THAT(joined.error().text(), HasSubstr("w1, w2"));
  const StopReport given_up = workers[0].stop();  // those that never join hold no call of the one that failed
  EXPECT_EQ(given_up.calls, 0U);
  EXPECT_EQ(given_up.served_calls, 0U);
}

TEST_P(BothBackends, GroupsOfOneNameFollowEachOther) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(2);
  for (int round = 0; round < 3; ++round) {
    const auto groups = workers.join(GetParam());
    workers.each([&](int rank) {
      const auto sum = groups[static_cast<std::size_t>(rank)]->all_reduce({at::full({1}, round)}, Reduction::sum).get();
      EXPECT_EQ(sum.front().item<double>(), 2.0 * round);
    });
  }
}

TEST_P(BothBackends, OperationsOfAContextAreNotRecorded) {
  CAFTAN_NEEDS_BACKEND;
  GroupThreads workers(2);
  const auto groups = workers.join(GetParam());
  workers.each([&](int rank) {
    const autograd::Context context(workers[rank]);
    const at::Tensor x = at::ones({2}).requires_grad_(true);
    const auto sum = groups[static_cast<std::size_t>(rank)]->all_reduce({x * 2}, Reduction::sum).get();
    EXPECT_FALSE(sum.front().requires_grad());
  });
}

// ---- wrong uses, the same with both

TEST(Groups, WhatCannotBeAGroupIsRefused) {
  GroupThreads workers(2);
  const auto code_of = [&](const GroupOptions& options) {
    return collectives::join_group(workers[0], options).error().code();
  };
  EXPECT_EQ(code_of({.name = "", .members = {"w0", "w1"}}), Errc::bad_arguments);
  EXPECT_EQ(code_of({.name = std::string(129, 'x'), .members = {"w0", "w1"}}), Errc::bad_arguments);
  EXPECT_EQ(code_of({.name = "g", .members = {}}), Errc::bad_arguments);
  EXPECT_EQ(code_of({.name = "g", .members = {"w0", "w0"}}), Errc::bad_arguments);
  EXPECT_EQ(code_of({.name = "g", .members = {"w1"}}), Errc::bad_arguments);
  EXPECT_EQ(code_of({.name = "g", .members = {"w0", "w7"}}), Errc::unknown_worker);
  EXPECT_EQ(code_of({.name = "g", .members = {"w0", "w1"}, .timeout = 0s}), Errc::bad_arguments);
}

TEST(Groups, CO10_OtherMembersOrAnotherOrderElsewhereAreFound) {
  GroupThreads workers(2);
  workers.each([&](int rank) {
    auto members = workers.names();
    if (rank == 1) std::swap(members[0], members[1]);
    const auto joined = collectives::join_group(workers[rank], {.name = "g", .members = members, .timeout = 20s});
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().code(), Errc::bad_arguments) << joined.error().message();
  });
}

TEST(Groups, ABackendThatTheBuildLacksNamesThePackage) {
  if (collectives::has_gloo()) GTEST_SKIP() << "this build has both backends";
  GroupThreads workers(1);
  const auto joined = collectives::join_group(workers[0], {.name = "g", .members = {"w0"}, .backend = Backend::gloo});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), Errc::unsupported);
  EXPECT_THAT(joined.error().text(), HasSubstr("libgloo-dev"));
}

// ---- over a stepped cluster

Group join(Worker& worker, const std::string& name, int members) {
  return collectives::join_group(worker, {.name = name, .members = names_of(members)}).value();
}
double sum_of(Worker& worker, const std::string& name, int members, double value) {
  return join(worker, name, members)->all_reduce({at::full({1}, value)}, Reduction::sum).get().front().item<double>();
}
/// The group of a member that calls nothing: it must not leave.
Group idle;  // NOLINT: of one test at a time
/// Joins, and waits for an operation that w0 never calls.
Result<double> wait_for_ever(Worker& worker, const std::string& name, int members) {
  const Group group = join(worker, name, members);
  if (worker.name() == "w0") {
    idle = group;
    return 0.0;
  }
  const auto sum = group->all_reduce({at::ones({1})}, Reduction::sum).result();
  if (!sum) return sum.error();
  return sum->front().item<double>();
}
Registry make_registry() {
  Registry registry;
  registry.add<&sum_of>("sum_of");
  registry.add<&wait_for_ever>("wait_for_ever");
  return registry;
}

class SteppedGroups : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void TearDown() override { idle.reset(); }
  testing::Cluster cluster_{GetParam(), {"w0", "w1", "w2", "driver"}, &make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, SteppedGroups, ::testing::Range<std::uint64_t>(1, 9));

TEST_P(SteppedGroups, CO3_ASumOfThreeInAnyOrder) {
  std::vector<Future<double>> sums;
  for (const char* const worker : {"w0", "w1", "w2"}) {
    sums.push_back(cluster_["driver"].rpc_async<&sum_of>(worker, std::string("g"), 3, worker[1] - '0' + 1.0));
  }
  EXPECT_EQ(wait_all(sums), (std::vector<double>{6, 6, 6}));
}

TEST_P(SteppedGroups, CO8_AKilledMemberIsPeerDownAtOnce) {
  std::vector<Future<double>> waits;
  for (const char* const worker : {"w0", "w1", "w2"}) {
    waits.push_back(cluster_["driver"].rpc_async<&wait_for_ever>(worker, std::string("g"), 3));
  }
  cluster_.run_until_idle();
  const auto before = cluster_.now();
  cluster_.network().kill("w0");
  cluster_.run_until_idle();
  for (const std::size_t rank : {1U, 2U}) {
    ASSERT_TRUE(waits[rank].ready()) << "without a timer";
    const Error error = waits[rank].outcome_status().error();
    EXPECT_EQ(error.code(), Errc::peer_down) << error.message();
    EXPECT_EQ(error.worker(), "w0") << error.message();
  }
  EXPECT_EQ(cluster_.now(), before);
}

TEST_P(SteppedGroups, CO8_AMemberThatLosesAnotherAloneFailsAll) {
  std::vector<Future<double>> waits;
  for (const char* const worker : {"w0", "w1", "w2"}) {
    waits.push_back(cluster_["driver"].rpc_async<&wait_for_ever>(worker, std::string("g"), 3));
  }
  cluster_.run_until_idle();
  cluster_.network().break_off("w0", "w1");
  cluster_.run_until_idle();
  ASSERT_TRUE(waits[2].ready()) << "w2 has lost no connection";
  EXPECT_EQ(waits[2].outcome_status().error().code(), Errc::peer_down);
}

}  // namespace
}  // namespace caftan::test::collectives_test
