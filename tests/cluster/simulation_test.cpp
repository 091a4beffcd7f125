// Partitions of a simulation as actors of several workers, one task at a time in an order that a seed chooses: the same
// bits as a sequential run, and what becomes of the others when a worker is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/sim/internal/partition.hpp"
#include "caftan/sim/sequential.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "phold/phold.hpp"

namespace caftan::test::simulation_test {
namespace {

using sim::Time;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 7;
constexpr double kEnd = 30;

phold::PholdConfig make_config() {
  return {.processes = 24, .start_events = 2, .remote = 0.5, .mean = 1, .lookahead = 0.5};
}

std::vector<std::string> logged;  // by the partitions of the tests that look

/// A partition without a role: what PartitionRole makes of a model and its context.
class PlainPartition : public sim::PartitionCalls {
 public:
  explicit PlainPartition(double least_delay)
      : PlainPartition(std::make_shared<phold::PholdConfig>(make_config()), least_delay) {}

 private:
  /// @param least_delay  of events; below the lookahead, which stays, it breaks SM-3
  PlainPartition(const std::shared_ptr<phold::PholdConfig>& config, double least_delay)
      : sim::PartitionCalls(
            [config, least_delay](sim::Builder& builder) {
              config->lookahead = least_delay;
              builder.lookahead(make_config().lookahead);
              builder.add<phold::Process>(static_cast<std::uint64_t>(config->processes),
                                          [config](sim::LpId) { return phold::Process{config.get()}; });
            },
            "", [](const std::string& line) { logged.push_back(line); }) {}
};

/// A process whose handler calls what the test says.
struct Knock {
  void serialize(auto&, unsigned) {}
};
struct Knocking {
  using Events = sim::Events<Knock>;
  const std::function<void()>* act;
  void start(sim::LpContext& lp) const { lp.schedule(1.0, Knock{}); }
  void on(const Knock&, sim::LpContext&) const { (*act)(); }
  void serialize(auto&, unsigned) {}
};
std::function<void()> knock;  // of the one test that uses it

class KnockingPartition : public sim::PartitionCalls {
 public:
  KnockingPartition()
      : sim::PartitionCalls([](sim::Builder& builder) { builder.add<Knocking>([] { return Knocking{&knock}; }); }, "",
                            [](const std::string&) {}) {}
};

Registry make_registry() {
  Registry registry;
  registry.add<KnockingPartition>("test.knocking")
      .constructor<>()
      .method<&sim::PartitionCalls::open>("open")
      .method<&sim::PartitionCalls::advance>("advance")
      .method<&sim::PartitionCalls::records>("records");
  registry.add<PlainPartition>("test.partition")
      .constructor<double>()
      .method<&sim::PartitionCalls::open>("open")
      .method<&sim::PartitionCalls::advance>("advance")
      .method<&sim::PartitionCalls::results>("results")
      .method<&sim::PartitionCalls::close>("close");
  return registry;
}

std::string sequential() {
  auto run = sim::run_sequential<phold::Phold>(make_config(), {.end_time = kEnd, .seed = kSeed});
  return run.value().fingerprint;
}

/// Some workers with partitions, and a clock.
class Simulated {
 public:
  Simulated(std::uint64_t seed, std::uint32_t partitions, double least_delay = make_config().lookahead)
      : cluster_(seed, names(partitions), make_registry), members_(names(partitions)) {
    members_.erase(members_.begin());
    for (const std::string& member : members_) {
      partitions_.push_back(
          clock().with({.timeout = base::Duration::zero()}).remote<PlainPartition>(member, least_delay));
    }
  }

  void open(sim::SyncChoice sync) {
    sim::OpenRequest request{.simulation = 99, .members = members_, .seed = kSeed, .sync = sync, .events = 1'000'000};
    std::vector<Future<sim::OpenReply>> opened;
    for (const auto& partition : partitions_) {
      opened.push_back(endless(partition).rpc_async<&sim::PartitionCalls::open>(request));
      ++request.index;
    }
    for (auto& one : opened) EXPECT_EQ(one.get().processes, 24U);
  }
  std::vector<Future<sim::BorderReply>> advance(double border) {
    std::vector<Future<sim::BorderReply>> advancing;
    const sim::AdvanceRequest request{.border = sim::time_of(border).value(), .wants_hash = true};
    for (const auto& partition : partitions_)
      advancing.push_back(endless(partition).rpc_async<&sim::PartitionCalls::advance>(request));
    return advancing;
  }
  std::string fingerprint() {
    std::vector<std::uint64_t> hashes;
    for (const auto& partition : partitions_) {
      const auto page = partition.rpc_sync<&sim::PartitionCalls::results>(std::uint64_t{0}, std::uint64_t{0});
      hashes.insert(hashes.end(), page.hashes.begin(), page.hashes.end());
    }
    return sim::fingerprint(hashes);
  }
  void close() const {
    for (const auto& partition : partitions_) partition.rpc_sync<&sim::PartitionCalls::close>();
  }
  /// Lets go of the partitions without a call of close().
  void drop() {
    partitions_.clear();
    cluster_.advance(std::chrono::seconds(1));
  }
  caftan::testing::Cluster& cluster() { return cluster_; }
  Worker& clock() { return cluster_["clock"]; }

 private:
  static std::vector<std::string> names(std::uint32_t partitions) {
    std::vector<std::string> names{"clock"};
    for (std::uint32_t i = 0; i < partitions; ++i) names.push_back("partition-" + std::to_string(i));
    return names;
  }
  static RRefCalls<PlainPartition> endless(const RRef<PlainPartition>& partition) {
    return partition.with({.timeout = base::Duration::zero()});
  }

  caftan::testing::Cluster cluster_;
  std::vector<std::string> members_;
  std::vector<RRef<PlainPartition>> partitions_;
};

TEST(Simulation, SM9_AnyPartitionsRuleAndBordersGiveTheBitsOfASequentialRun) {
  const std::string expected = sequential();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (const std::uint32_t partitions : {1U, 2U, 4U}) {
      for (const sim::SyncChoice sync : {sim::SyncChoice::window, sim::SyncChoice::null_message}) {
        Simulated simulated(seed, partitions);
        simulated.open(sync);
        // Seeds with other numbers of borders.
        const auto borders = static_cast<double>(1 + 4 * seed);
        for (double border = 1; border <= borders; ++border) {
          auto advancing = simulated.advance(kEnd * border / borders);
          for (auto& one : advancing) (void)one.get();
        }
        EXPECT_EQ(simulated.fingerprint(), expected) << seed << " " << partitions;
      }
    }
  }
}

TEST(Simulation, SM14_ALostPartitionIsPeerDownAtTheOthersWithItsNameAndVirtualTime) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Simulated simulated(seed, 3);
    simulated.open(seed % 2 == 0 ? sim::SyncChoice::window : sim::SyncChoice::null_message);
    auto advancing = simulated.advance(kEnd);
    for (std::uint64_t step = 0; step < 40 * (seed + 1); ++step) simulated.cluster().executor().step();
    if (advancing[0].ready()) continue;  // the run was over before the moment
    simulated.cluster().network().kill("partition-1");
    for (const std::size_t survivor : {0U, 2U}) {
      const auto outcome = advancing[survivor].result();
      ASSERT_FALSE(outcome) << seed;
      EXPECT_EQ(outcome.error().code(), Errc::peer_down) << outcome.error();
      EXPECT_THAT(outcome.error().text(),
                  AllOf(HasSubstr("partition-1 is lost at virtual time "), HasSubstr("has handled all events before ")))
          << seed;
    }
    EXPECT_EQ(advancing[1].result().error().code(), Errc::peer_down);
  }
}

TEST(Simulation, SM14_WithoutItsClockAPartitionStopsAndTheObjectEnds) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Simulated simulated(seed, 2);
    simulated.open(sim::SyncChoice::window);
    auto advancing = simulated.advance(kEnd);
    for (std::uint64_t step = 0; step < 60 * (seed + 1); ++step) simulated.cluster().executor().step();
    logged.clear();
    simulated.cluster().network().kill("clock");
    simulated.cluster().advance(std::chrono::seconds(1));
    // No frame goes on between partitions whose clock is lost.
    const std::size_t frames =
        simulated.cluster().network().link("partition-0", "partition-1").count(wire::FrameKind::actor_message);
    simulated.cluster().advance(std::chrono::seconds(1));
    EXPECT_EQ(simulated.cluster().network().link("partition-0", "partition-1").count(wire::FrameKind::actor_message),
              frames)
        << seed;
    for (auto& one : advancing) EXPECT_TRUE(one.ready());
    EXPECT_THAT(logged, ::testing::UnorderedElementsAre(HasSubstr("partition-0"), HasSubstr("partition-1"))) << seed;
    EXPECT_THAT(logged, ::testing::Each(HasSubstr("this partition has handled all events before "))) << seed;
    for (const std::string& line : logged) lost += line.find("clock is lost; ") == std::string::npos ? 0 : 1;
  }
  EXPECT_GT(lost, 0) << "a partition may learn of the end of its object first, but not all of them each time";
}

TEST(Simulation, SM14_APartitionThatEndsWithoutItsClocksCloseLogsHowFarItCame) {
  for (const bool closes : {false, true}) {
    Simulated simulated(3, 1);
    simulated.open(sim::SyncChoice::window);
    (void)simulated.advance(kEnd / 2)[0].get();
    logged.clear();
    if (closes) simulated.close();
    simulated.drop();
    if (closes)
      EXPECT_THAT(logged, ::testing::IsEmpty());
    else
      EXPECT_THAT(logged,
                  ::testing::ElementsAre(HasSubstr("the simulation ends before its clock has closed it; this partition "
                                                   "has handled all events before 15")));
  }
}

TEST(Simulation, SM3_ADelayBelowTheLookaheadEndsTheRunInEveryPlacement) {
  std::string text;
  for (const std::uint32_t partitions : {1U, 2U, 3U}) {
    Simulated simulated(partitions, partitions, 0.125);
    simulated.open(sim::SyncChoice::window);
    auto advancing = simulated.advance(kEnd);
    std::string found;
    for (std::size_t i = 0; i < advancing.size() && found.empty(); ++i) {
      // Those that wait for the one whose handler failed go on waiting: the clock ends the run.
      simulated.cluster().run_until_idle();
      if (!advancing[i].ready()) continue;
      const auto outcome = advancing[i].result();
      if (!outcome && outcome.error().code() == Errc::lookahead_violation) found = outcome.error().text();
    }
    EXPECT_THAT(found, AllOf(HasSubstr("LP "), HasSubstr("Process"), HasSubstr("below the model's lookahead of 0.5")));
    if (partitions == 1) text = found;
  }
  EXPECT_NE(text, "");
}

TEST(Simulation, SM13_AHandlerThatCallsItsOwnPartitionWouldDeadlock) {
  caftan::testing::Cluster cluster(1, {"clock", "partition-0"}, make_registry);
  const auto partition = cluster["clock"].remote<KnockingPartition>("partition-0");
  Errc found = Errc::ok;
  knock = [&] { found = partition.try_rpc_sync<&sim::PartitionCalls::records>().error().code(); };
  const sim::OpenRequest request{.simulation = 5, .members = {"partition-0"}, .events = 10};
  (void)partition.rpc_sync<&sim::PartitionCalls::open>(request);
  (void)partition.rpc_sync<&sim::PartitionCalls::advance>(sim::AdvanceRequest{.border = sim::time_of(2.0).value()});
  EXPECT_EQ(found, Errc::would_deadlock);
  knock = nullptr;
}

TEST(Simulation, APartitionIsOpenOnceAndSaysSo) {
  Simulated simulated(3, 1);
  simulated.open(sim::SyncChoice::window);
  auto first = simulated.advance(10);
  auto second = simulated.advance(20);
  const auto one = first[0].result();
  const auto other = second[0].result();
  ASSERT_NE(one.has_value(), other.has_value()) << "the one that comes second is refused";
  EXPECT_EQ((one ? other : one).error().code(), Errc::bad_arguments);
}

}  // namespace
}  // namespace caftan::test::simulation_test
