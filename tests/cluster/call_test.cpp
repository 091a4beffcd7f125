// Calls between Workers of one process, over the seeded executor and over threads with real sockets.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::call_test {
namespace {

int add(int a, int b) { return a + b; }
std::string greet(Worker& worker, const std::string& whom) { return worker.name() + " greets " + whom; }
int fails(int) { throw std::runtime_error("no luck"); }
int fails_at_length(int bytes) { throw std::runtime_error(std::string(static_cast<std::size_t>(bytes), 'x')); }
at::Tensor twice(const at::Tensor& t) { return t + t; }

Registry make_registry() {
  Registry registry;
  registry.add<&add>("math.add");
  registry.add<&greet>("greet");
  registry.add<&fails>("fails");
  registry.add<&fails_at_length>("fails_at_length");
  registry.add<&twice>("twice");
  return registry;
}

class SteppedCall : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, SteppedCall, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(SteppedCall, ReturnsWhatTheFunctionReturns) {
  EXPECT_EQ(cluster_[0].rpc_sync<&add>("worker1", 2, 40), 42);
  EXPECT_EQ(cluster_[1].rpc_sync<&greet>("worker2", "worker1"), "worker2 greets worker1");
}

TEST_P(SteppedCall, ToItselfTakesTheSamePath) { EXPECT_EQ(cluster_[0].rpc_sync<&add>("worker0", 1, 2), 3); }

TEST_P(SteppedCall, ExceptionArrivesTyped) {
  const auto result = cluster_[0].try_rpc_sync<&fails>("worker1", 1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::remote_exception);
  EXPECT_EQ(result.error().worker(), "worker1");
  EXPECT_NE(result.error().text().find("no luck"), std::string::npos);
}

TEST_P(SteppedCall, AnExceptionOfAnyLengthArrivesShortenedAndTheConnectionGoesOn) {
  const auto result = cluster_[0].try_rpc_sync<&fails_at_length>("worker1", 70'000'000);  // more than limits.message
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::remote_exception);
  EXPECT_LT(result.error().text().size(), 10'000U);
  EXPECT_EQ(cluster_[0].rpc_sync<&add>("worker1", 2, 40), 42);
}

TEST_P(SteppedCall, TensorsTravel) {
  const at::Tensor t = at::arange(12).view({3, 4});
  EXPECT_TRUE(cluster_[0].rpc_sync<&twice>("worker1", t).equal(t + t));
}

TEST_P(SteppedCall, WhatIsCountedAsSentIsWhatArrives) {
  cluster_[0].rpc_sync<&twice>("worker1", at::arange(100'000));  // 800 kB: several chunks
  cluster_[2].remote<&add>("worker0", 1, 2).to_here();
  cluster_.run_until_idle();
  std::map<std::string, std::uint64_t> frames;
  std::uint64_t all_frames = 0, all_bytes = 0, frames_in = 0, bytes_in = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    for (const SentFrames& of : cluster_[i].traffic()) {
      frames[of.kind] += of.frames;
      all_frames += of.frames;
      all_bytes += of.bytes;
    }
    frames_in += cluster_[i].counters().frames_in;
    bytes_in += cluster_[i].counters().bytes_in;
  }
  EXPECT_EQ(all_frames, frames_in);
  EXPECT_EQ(all_bytes, bytes_in);
  EXPECT_EQ(frames["call"], 1U);
  EXPECT_EQ(frames["chunk"], 8U);  // 256 KiB each, both ways
  EXPECT_EQ(frames["create"], 1U);
  EXPECT_EQ(frames["fetch"], 1U);
  EXPECT_EQ(frames["response"], 3U);
  EXPECT_EQ(frames["membership.view"], 2U);
  EXPECT_EQ(frames["membership.met"], 4U);
  const auto before = cluster_[0].traffic();
  cluster_[0].stop();
  EXPECT_GE(cluster_[0].traffic().size(), before.size()) << "the frames of ended sessions stay counted";
}

TEST_P(SteppedCall, RemoteValueIsFetchedAndGone) {
  {
    RRef<int> r = cluster_[0].remote<&add>("worker1", 20, 22);
    EXPECT_EQ(r.to_here(), 42);
    EXPECT_EQ(cluster_[1].counters().owner_rrefs, 1U);
  }
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 0U);
  EXPECT_EQ(cluster_[0].counters().user_rrefs, 0U);
}

}  // namespace
}  // namespace caftan::call_test
