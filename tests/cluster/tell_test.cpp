// One-way calls over sessions (TL-1 to TL-10).
#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <c10/core/GradMode.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/rpc/group.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "rref_roles.hpp"

namespace caftan::test::tell_test {
namespace {

using namespace std::chrono_literals;

std::vector<int> noted;  // by the functions below, at whatever worker
void note(int number) { noted.push_back(number); }
int note_and_return(int number) {
  noted.push_back(number);
  return number;
}
/// Waits for the gate, then notes.
void note_behind_gate(int number) {
  Gate::current()->wait().get();
  noted.push_back(number);
}
void note_sum(const at::Tensor& tensor) { noted.push_back(static_cast<int>(tensor.numel())); }
void note_needs_gradients(const at::Tensor& tensor) { noted.push_back(tensor.requires_grad() ? 1 : 0); }
void note_value(const RRef<int>& rref) { noted.push_back(rref.to_here()); }
void fail(int) { throw std::runtime_error("no luck"); }
/// Calls back to its caller, whose function calls this worker again.
int ask_back(Worker& worker, const std::string& whom) { return worker.rpc_sync<&add>(whom, 1, 2); }
void note_asking(Worker& worker, const std::string& whom) {
  noted.push_back(worker.rpc_sync<&ask_back>(whom, worker.name()));
}
void pass_note_on(Worker& worker, int number, const std::string& to) { worker.tell<&note>(to, number); }
inline constexpr RemoteFunction<void(int)> kNote{"note"};
inline constexpr RemoteFunction<void(int)> kNowhere{"nowhere"};

/// Notes in order what its methods get.
class Journal {
 public:
  void write(int number) { numbers_.push_back(number); }
  std::vector<int> read() const { return numbers_; }
  void write_at_gate(int number) {
    Gate::current()->wait().get();
    numbers_.push_back(number);
  }

 private:
  std::vector<int> numbers_;
};

Registry make_registry() {
  Registry registry = make_rref_registry();
  registry.add<&note>("note");
  registry.add<&note_and_return>("note_and_return");
  registry.add<&note_behind_gate>("note_behind_gate");
  registry.add<&note_sum>("note_sum");
  registry.add<&note_needs_gradients>("note_needs_gradients");
  registry.add<&note_value>("note_value");
  registry.add<&fail>("fail");
  registry.add<&ask_back>("ask_back");
  registry.add<&note_asking>("note_asking");
  registry.add<&pass_note_on>("pass_note_on");
  registry.add<Journal>("journal")
      .constructor<>()
      .method<&Journal::write>("write")
      .method<&Journal::read>("read")
      .exclusive<&Journal::write_at_gate>("write_at_gate");
  return registry;
}

std::vector<int> counted_to(int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

class OneWayCalls : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  OneWayCalls() { noted.clear(); }
  std::size_t replies() { return cluster_.network().count(wire::FrameKind::response); }
  bool log_has(const std::string& text) const {
    return std::any_of(cluster_.log().begin(), cluster_.log().end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  Gate gate_;
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_registry, [](WorkerOptions& options) {
                              options.limits.pending_calls = 100;
                            }};
};
INSTANTIATE_TEST_SUITE_P(Seeds, OneWayCalls, ::testing::Range<std::uint64_t>(1, 9));

TEST_P(OneWayCalls, TL1_RunsThereWithoutAReply) {
  const std::size_t before = replies();
  cluster_[0].tell<&note>("worker1", 1);
  cluster_[0].tell<&note_and_return>("worker1", 2);
  cluster_[0].tell(kNote, "worker1", 3);
  cluster_[0].tell<&note_sum>("worker1", at::ones({100'000}));
  cluster_[0].tell<&note>("worker0", 5);
  cluster_.run_until_idle();
  std::sort(noted.begin(), noted.end());
  EXPECT_EQ(noted, (std::vector<int>{1, 2, 3, 5, 100'000}));
  EXPECT_EQ(replies(), before);
}

TEST_P(OneWayCalls, TL2_WhatCannotBeHandedOverIsAnErrorHere) {
  EXPECT_EQ(cluster_[0].try_tell<&note>("nowhere", 1).error().code(), Errc::unknown_worker);
  cluster_.network().kill("worker1");
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[0].try_tell<&note>("worker1", 1).error().code(), Errc::peer_down);
  EXPECT_THROW(cluster_[0].tell<&note>("worker1", 1), RpcException);
  cluster_[0].stop();
  EXPECT_EQ(cluster_[0].try_tell<&note>("worker2", 1).error().code(), Errc::shut_down);
}

TEST_P(OneWayCalls, TL3_ThoseThatHadNotEndedWhenThePeerWasLostAreCounted) {
  cluster_[0].tell<&note>("worker1", 1);
  cluster_.run_until_idle();
  cluster_.advance(10ms);
  EXPECT_EQ(cluster_[0].counters().tells_lost, 0U);
  for (int i = 0; i < 3; ++i) cluster_[0].tell<&note_behind_gate>("worker1", i);
  cluster_.run_until_idle();
  cluster_.network().kill("worker1");
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[0].counters().tells_lost, 3U);
  EXPECT_TRUE(log_has("worker0: 3 one-way calls to worker1 had not ended when it was lost, and may not have run"));
  gate_.open();
  cluster_.run_until_idle();
}

TEST_P(OneWayCalls, TL4_TheObjectLivesUntilTheCallHasBegun) {
  for (int i = 0; i < 5; ++i) cluster_[0].remote<Journal>("worker1").tell<&Journal::write>(i);
  cluster_.run_until_idle();
  EXPECT_FALSE(log_has("failed")) << "the references were dropped at once";
  cluster_.advance(10ms);
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 0U) << "and the objects have ended by now";
}

TEST_P(OneWayCalls, TL5_WaitsForRoomAsCallsDo) {
  cluster_.network().link("worker0", "worker1").hold();
  for (int i = 0; i < 100; ++i) cluster_[0].tell<&note>("worker1", i);
  const CallSite at_once = cluster_[0].with({.timeout = {}, .fail_when_full = true});
  EXPECT_EQ(at_once.try_tell<&note>("worker1", 1).error().code(), Errc::overloaded);
  EXPECT_EQ(at_once.try_rpc_sync<&add>("worker1", 1, 2).error().code(), Errc::overloaded);
  EXPECT_EQ(cluster_[0].with({.timeout = 2s}).try_tell<&note>("worker1", 1).error().code(), Errc::timeout);
  EXPECT_TRUE(at_once.try_tell<&note>("worker2", 1)) << "another peer has room";
  cluster_.network().link("worker0", "worker1").release();
  cluster_.run_until_idle();
  EXPECT_EQ(noted.size(), 101U);
  cluster_.advance(10ms);
  EXPECT_TRUE(at_once.try_tell<&note>("worker1", 1));
}

TEST_P(OneWayCalls, TL6_FunctionsRunInOrderOneAfterTheOther) {
  for (int i = 0; i < 200; ++i) cluster_[0].tell<&note>("worker1", i);
  cluster_.run_until_idle();
  EXPECT_EQ(noted, counted_to(200));
}

TEST_P(OneWayCalls, TL6_AFunctionThatWaitsLetsLaterOnesRun) {
  cluster_[0].tell<&note_behind_gate>("worker1", 100);
  for (int i = 0; i < 20; ++i) cluster_[0].tell<&note>("worker1", i);
  cluster_.run_until_idle();
  EXPECT_EQ(noted, counted_to(20));
  gate_.open();
  cluster_.run_until_idle();
  EXPECT_EQ(noted.back(), 100);
}

TEST_P(OneWayCalls, TL6_AFunctionMayCallBackToItsCallerThatCallsItsWorker) {
  cluster_[0].tell<&note_asking>("worker1", "worker0");
  cluster_[0].tell<&note>("worker1", 5);
  cluster_.run_until_idle();
  std::sort(noted.begin(), noted.end());
  EXPECT_EQ(noted, (std::vector<int>{3, 5}));
}

TEST_P(OneWayCalls, TL7_MethodsBeginInOrderAndALaterCallBehindThem) {
  const RRef<Journal> journal = cluster_[0].remote<Journal>("worker1");
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i) journal.tell<&Journal::write>(20 * round + i);
    EXPECT_EQ(journal.rpc_sync<&Journal::read>(), counted_to(20 * (round + 1)));
  }
}

TEST_P(OneWayCalls, TL7_ABusyObjectHoldsUpNoOther) {
  const RRef<Journal> busy = cluster_[0].remote<Journal>("worker1");
  const RRef<Journal> other = cluster_[0].remote<Journal>("worker1");
  busy.tell<&Journal::write_at_gate>(1);
  busy.tell<&Journal::write>(2);
  other.tell<&Journal::write>(3);
  cluster_[0].tell<&note>("worker1", 4);
  EXPECT_EQ(other.rpc_sync<&Journal::read>(), (std::vector<int>{3}));
  cluster_.run_until_idle();
  EXPECT_EQ(noted, (std::vector<int>{4}));
  gate_.open();
  EXPECT_EQ(busy.rpc_sync<&Journal::read>(), (std::vector<int>{1, 2}));
}

TEST_P(OneWayCalls, TL8_OneWithReferencesKeepsItsPlace) {
  const RRef<int> value = cluster_[0].remote<&add>("worker2", 40, 2);
  const RRef<Journal> journal = cluster_[0].remote<Journal>("worker1");
  for (int i = 0; i < 5; ++i) cluster_[0].tell<&note>("worker1", i);
  cluster_[0].tell<&note_value>("worker1", value);
  cluster_[0].tell<&note>("worker1", 5);
  journal.tell<&Journal::write>(6);
  EXPECT_EQ(journal.rpc_sync<&Journal::read>(), (std::vector<int>{6}));
  cluster_.run_until_idle();
  EXPECT_EQ(noted.size(), 7U);
  EXPECT_EQ(std::vector<int>(noted.begin(), noted.begin() + 5), counted_to(5));
  EXPECT_NE(std::find(noted.begin(), noted.end(), 42), noted.end());
}

TEST_P(OneWayCalls, TL9_WhatFailsThereStandsInItsLog) {
  cluster_[0].tell<&fail>("worker1", 1);
  cluster_[0].tell(kNowhere, "worker1", 1);
  cluster_.run_until_idle();
  EXPECT_TRUE(log_has("worker1: a one-way call of worker0 failed: remote_exception"));
  cluster_[0].tell<&note>("worker1", 1);
  cluster_.run_until_idle();
  EXPECT_EQ(noted, (std::vector<int>{1})) << "later ones run";
  EXPECT_EQ(cluster_[0].counters().tells_lost, 0U) << "they have ended, with an error";
}

TEST_P(OneWayCalls, TL10_NothingOfAnAutogradContextGoesAlong) {
  at::Tensor parameter = at::ones({4});
  parameter.set_requires_grad(true);
  const autograd::Context context(cluster_[0]);
  const Result<void> refused = cluster_[0].try_tell<&note_needs_gradients>("worker1", parameter);
  EXPECT_EQ(refused.error().code(), Errc::unsupported);
  EXPECT_TRUE(cluster_[0].try_tell<&note_needs_gradients>("worker1", parameter.detach()));
  {
    const c10::AutoGradMode off(false);
    EXPECT_TRUE(cluster_[0].try_tell<&note_needs_gradients>("worker1", parameter));
  }
  cluster_.run_until_idle();
  EXPECT_EQ(noted, (std::vector<int>{0, 0}));
  EXPECT_TRUE(cluster_[1].autograd_contexts().empty());
}

TEST_P(OneWayCalls, TL11_AWorkerLeavesOnlyWhenItsOneWayCallsHaveEnded) {
  for (int i = 0; i < 10; ++i) cluster_[0].tell<&pass_note_on>("worker1", i, "worker2");
  cluster_[0].stop();
  cluster_[1].stop();
  EXPECT_EQ(noted.size(), 10U);
  EXPECT_EQ(cluster_[0].counters().tells_lost + cluster_[1].counters().tells_lost, 0U);
}

TEST_P(OneWayCalls, AGroupTellsAllItsMembersAlsoBehindOneThatIsLost) {
  const WorkerGroup group = cluster_[0].group({"worker1", "worker2"});
  group.tell<&note>(1);
  cluster_.run_until_idle();
  EXPECT_EQ(noted, (std::vector<int>{1, 1}));
  cluster_.network().kill("worker1");
  cluster_.run_until_idle();
  const Result<void> sent = group.try_tell<&note>(2);
  EXPECT_EQ(sent.error().code(), Errc::peer_down);
  EXPECT_EQ(sent.error().worker(), "worker1");
  cluster_.run_until_idle();
  EXPECT_EQ(noted, (std::vector<int>{1, 1, 2}));
}

}  // namespace
}  // namespace caftan::test::tell_test
