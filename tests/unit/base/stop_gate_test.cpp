#include "caftan/base/stop_gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace caftan {
namespace {

TEST(StopGate, LetsNobodyInOnceClosed) {
  StopGate gate;
  EXPECT_TRUE(gate.enter());
  EXPECT_EQ(gate.inside(), 0U) << "a dropped pass leaves";
  gate.close();
  EXPECT_FALSE(gate.enter());
}

TEST(StopGate, AMovedPassLeavesOnce) {
  StopGate gate;
  StopGate::Pass pass = gate.enter();
  StopGate::Pass other = std::move(pass);
  EXPECT_EQ(gate.inside(), 1U);
  other = StopGate::Pass();
  EXPECT_EQ(gate.inside(), 0U);
}

TEST(StopGate, CloserWaitsForThoseInside) {
  StopGate gate;
  std::atomic<bool> done = false;
  std::atomic<bool> inside = false;
  std::thread worker([&] {
    const StopGate::Pass pass = gate.enter();
    inside = true;
    inside.notify_one();
    // The closer has begun: from then on nobody enters.
    while (gate.enter()) std::this_thread::yield();
    done = true;
  });
  inside.wait(false);
  gate.close_and_wait();
  EXPECT_TRUE(done);
  worker.join();
}

}  // namespace
}  // namespace caftan
