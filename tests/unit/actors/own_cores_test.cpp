// Which cores a process of a run keeps to.
#include "role/own_cores.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace caftan::test::own_cores_test {
namespace {

using actors::own_cores;
using Cores = std::vector<int>;

/// A clock, and partitions in processes of their own.
app::Plan plan_of(int partitions) {
  app::Plan plan;
  plan.workers.push_back({.name = "clock"});
  for (int i = 1; i <= partitions; ++i) plan.workers.push_back({.process = i, .own_cores = true});
  return plan;
}

TEST(OwnCores, RN25_TheCoresAreDividedBetweenTheProcesses) {
  const app::Plan plan = plan_of(2);
  EXPECT_EQ(own_cores(plan, plan.workers[1], {0, 1}).cores, Cores{0});
  EXPECT_EQ(own_cores(plan, plan.workers[2], {0, 1}).cores, Cores{1});
  EXPECT_EQ(own_cores(plan, plan.workers[2], {0, 1}).text, "on 1 of 2 cores: 1 (run.own_cores)");
  EXPECT_EQ(own_cores(plan, plan.workers[1], {2, 3, 6, 7, 8}).cores, (Cores{2, 3}));
  EXPECT_EQ(own_cores(plan, plan.workers[2], {2, 3, 6, 7, 8}).cores, (Cores{6, 7, 8}));
  EXPECT_EQ(own_cores(plan, plan.workers[2], {2, 3, 6, 7, 8}).text, "on 3 of 5 cores: 6, 7, 8 (run.own_cores)");
}

TEST(OwnCores, RN25_OtherWorkersAndProcessesWithoutARivalKeepToNone) {
  const app::Plan plan = plan_of(2);
  EXPECT_EQ(own_cores(plan, plan.workers[0], {0, 1}).cores, Cores{});
  const app::Plan single = plan_of(1);
  EXPECT_EQ(own_cores(single, single.workers[1], {0, 1}).cores, Cores{});
  EXPECT_EQ(own_cores(single, single.workers[1], {0, 1}).text, "");
}

TEST(OwnCores, RN25_WithTooFewCoresNoProcessKeepsToAny) {
  app::Plan plan = plan_of(3);
  for (int i = 1; i <= 3; ++i)
    EXPECT_EQ(own_cores(plan, plan.workers[static_cast<std::size_t>(i)], {0, 1}).cores, Cores{});
  plan.workers[2].torch_threads = 2;
  EXPECT_EQ(own_cores(plan, plan.workers[2], {0, 1, 2}).cores, Cores{}) << "torch's threads have no room";
}

TEST(OwnCores, RN25_EachHostHasCoresOfItsOwn) {
  app::Plan plan = plan_of(2);
  plan.workers[2].host = "another";
  EXPECT_EQ(own_cores(plan, plan.workers[1], {0, 1}).cores, Cores{});
}

TEST(OwnCores, RN25_ThreadsThatAreStartedLaterKeepToTheSameCores) {
  const Cores all = actors::allowed_cores();
  ASSERT_FALSE(all.empty());
  Cores seen;
  std::error_code refused;
  std::thread([&] {
    refused = actors::keep_to({all.back()});
    std::thread([&] { seen = actors::allowed_cores(); }).join();
  }).join();
  EXPECT_FALSE(refused);
  EXPECT_EQ(seen, Cores{all.back()});
  EXPECT_EQ(actors::allowed_cores(), all);
}

TEST(OwnCores, RN25_ASystemThatRefusesIsAnErrorAndLeavesAllAsItIs) {
  const Cores all = actors::allowed_cores();
  ASSERT_LT(all.back(), 1023) << "core 1023 must be missing";
  EXPECT_TRUE(actors::keep_to({1023}));
  EXPECT_EQ(actors::allowed_cores(), all);
}

}  // namespace
}  // namespace caftan::test::own_cores_test
