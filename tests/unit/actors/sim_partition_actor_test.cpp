// The actor of a simulation's partition: gives frames to the partition with the life of the worker that sent them, and
// the news of lost workers; it runs nothing itself.
#include "sim/sim_partition_actor.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "exchange_pair.hpp"
#include "sim/simulation_service.hpp"

namespace caftan::actors::sim_partition_actor_test {
namespace {

/// A partition that notes what it gets.
class Noted final : public SimPartitionPorts {
 public:
  void take_frame(const WorkerLife& from, wire::Bytes frame) override { frames.emplace_back(from, std::move(frame)); }
  void on_lost(const WorkerLife& peer) override { lost.push_back(peer); }
  void end(const Error& reason) override { ended = reason; }

  std::vector<std::pair<WorkerLife, wire::Bytes>> frames;
  std::vector<WorkerLife> lost;
  Error ended;
};

class SimPartitionActorTest : public ::testing::Test {
 protected:
  SimPartitionActorTest() {
    actor_ = pair_.near->host.spawn(sim_partition_actor, std::uint64_t{9}, std::uint32_t{1},
                                    std::shared_ptr<SimPartitionPorts>(ports_));
    sender_ = pair_.proxy(remote::Address::sim_partition(9, 0));
  }
  ~SimPartitionActorTest() override {
    sender_ = nullptr;
    table_->end(Error(Errc::shut_down, "over"));
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = nullptr;
    executor_.run();
  }
  void receive(const caf::strong_actor_ptr& from, wire::Bytes bytes) {
    caf::actor_cast<caf::strong_actor_ptr>(actor_)->enqueue(from, caf::make_message_id(),
                                                            caf::make_message(SimFrame{std::move(bytes)}), nullptr);
    executor_.run();
  }

  transport::SteppedExecutor executor_{1};
  ExchangePair pair_{executor_};
  std::shared_ptr<Noted> ports_ = std::make_shared<Noted>();
  std::shared_ptr<SimulationTable> table_ = std::make_shared<SimulationTable>();
  caf::actor actor_;
  caf::strong_actor_ptr sender_;
};

TEST_F(SimPartitionActorTest, SM5_GivesAFrameWithTheWorkerThatSentIt) {
  receive(sender_, wire::Bytes(3));
  ASSERT_EQ(ports_->frames.size(), 1U);
  EXPECT_EQ(ports_->frames[0].first, pair_.far_life());
  EXPECT_EQ(ports_->frames[0].second.size(), 3U);
}

TEST_F(SimPartitionActorTest, AFrameWithoutASessionIsDropped) {
  receive(nullptr, wire::Bytes(3));
  EXPECT_TRUE(ports_->frames.empty());
}

TEST_F(SimPartitionActorTest, SM14_TheTableTellsItsActorsOfALostWorkerAndEndsThem) {
  ASSERT_TRUE(table_->add({9, 1}, ports_, actor_));
  EXPECT_TRUE(table_->find({9, 1}));
  EXPECT_FALSE(table_->find({9, 0}));
  table_->on_lost(pair_.far_life());
  executor_.run();
  EXPECT_EQ(ports_->lost, std::vector<WorkerLife>{pair_.far_life()});
  table_->end(Error(Errc::shut_down, "the worker leaves"));
  EXPECT_EQ(ports_->ended.text(), "the worker leaves");
  EXPECT_FALSE(table_->find({9, 1}));
  EXPECT_EQ(table_->add({9, 1}, ports_, actor_).error().code(), Errc::shut_down);
}

TEST_F(SimPartitionActorTest, TheTableIsEmptyOnceItsJobsAreOver) {
  auto job = SimulationTable::begin_job(table_);
  ASSERT_TRUE(job);
  bool is_empty = false;
  table_->when_empty([&] { is_empty = true; });
  EXPECT_FALSE(is_empty);
  job.reset();
  EXPECT_TRUE(is_empty);
  table_->end(Error(Errc::shut_down, "over"));
  EXPECT_FALSE(SimulationTable::begin_job(table_));
}

}  // namespace
}  // namespace caftan::actors::sim_partition_actor_test
