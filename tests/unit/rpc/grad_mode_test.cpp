// Grad mode travels with a call (CALL-17).
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <vector>

#include "caftan/rpc/call_hook.hpp"
#include "caftan/tensor/operators.hpp"
#include "fake_caller.hpp"

namespace caftan::grad_mode_test {
namespace {

using test::FakeJob;

bool records() { return at::GradMode::is_enabled(); }
bool records_briefly() { return at::GradMode::is_enabled(); }
bool says_grad_mode(const CallInfo& info) { return info.grad_mode; }
bool asks(Worker& worker, const std::string& whom) { return worker.rpc_sync<&records>(whom); }
bool forgets_to_set_it_back() {
  at::GradMode::set_enabled(false);
  return true;
}
/// Returns the grad mode before and after a wait for a call to `whom`.
std::vector<int> waits(Worker& worker, const std::string& whom) {
  const bool before = records();
  worker.rpc_sync<&records>(whom);
  return {before, records()};
}
/// As `waits`, with grad mode switched on around it; returns also the grad mode of a second call.
std::vector<int> records_all_the_same(Worker& worker, const std::string& whom) {
  const at::AutoGradMode on(true);
  std::vector<int> seen = waits(worker, whom);
  seen.push_back(worker.rpc_sync<&records>(whom));
  return seen;
}

class Part {
 public:
  Part() : made_recording_(records()) {}
  bool made_recording() const { return made_recording_; }
  bool method() const { return records(); }
  /// Returns the grad mode of a call to `whom` and that of the continuation of this call.
  Future<std::vector<int>> later(Worker& worker, const std::string& whom) {
    return worker.rpc_async<&records>(whom).then([](Result<bool> there) {
      return std::vector<int>{*there, records()};
    });
  }
  Future<at::Tensor> weight_later(Worker& worker, const std::string& whom) {
    return worker.rpc_async<&records>(whom).then([this](Result<bool>) { return weight_; });
  }
  at::Tensor weight() const { return weight_; }

 private:
  const bool made_recording_;
  const at::Tensor weight_ = at::ones({2}).requires_grad_();
};

Registry make_registry() {
  Registry registry;
  registry.add<&records>("records");
  registry.add<&records_briefly>("records_briefly", brief);
  registry.add<&says_grad_mode>("says_grad_mode");
  registry.add<&asks>("asks");
  registry.add<&forgets_to_set_it_back>("forgets_to_set_it_back");
  registry.add<&waits>("waits");
  registry.add<&records_all_the_same>("records_all_the_same");
  registry.add<Part>("part")
      .constructor<>()
      .method<&Part::made_recording>("made_recording")
      .method<&Part::method>("method")
      .method<&Part::later>("later")
      .method<&Part::weight_later>("weight_later")
      .method<&Part::weight>("weight");
  return registry;
}

struct GradMode : ::testing::Test {
  GradMode() {
    for (int i = 0; i < 2; ++i) job.add(make_registry());
  }
  Worker& worker(int i = 0) { return job.at(i).worker(); }
  FakeJob job;
};

TEST_F(GradMode, CALL17_AFunctionRunsInThatOfItsCaller) {
  EXPECT_TRUE(worker().rpc_sync<&records>("worker1"));
  {
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(worker().rpc_sync<&records>("worker1"));
    EXPECT_FALSE(worker().rpc_sync<&records_briefly>("worker1"));
    EXPECT_FALSE(worker().rpc_sync<&says_grad_mode>("worker1"));
    EXPECT_FALSE(worker().rpc_sync<&records>("worker0")) << "of oneself, too";
    const at::AutoGradMode on(true);
    EXPECT_TRUE(worker().rpc_sync<&records>("worker1"));
  }
  EXPECT_TRUE(worker().rpc_sync<&records>("worker1"));
  EXPECT_TRUE(worker().rpc_sync<&records_briefly>("worker1"));
  EXPECT_TRUE(worker().rpc_sync<&says_grad_mode>("worker1"));
}

TEST_F(GradMode, CALL17_OfInferenceModeOnlyThatItIsOffTravels) {
  const c10::InferenceMode inference;
  EXPECT_FALSE(worker().rpc_sync<&records>("worker1"));
}

TEST_F(GradMode, CALL17_TheMomentOfTheCallCounts) {
  Future<bool> off, on;
  {
    const at::NoGradGuard no_grad;
    off = worker().rpc_async<&records>("worker1");
  }
  on = worker().rpc_async<&records>("worker1");
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(off.get());
  EXPECT_TRUE(on.get());
}

TEST_F(GradMode, CALL17_NestedCallsInheritIt) {
  EXPECT_TRUE(worker().rpc_sync<&asks>("worker1", "worker0"));
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(worker().rpc_sync<&asks>("worker1", "worker0"));
}

TEST_F(GradMode, CALL17_CALL9_ItIsTheSameBehindAWait) {
  Future<std::vector<int>> off, on, own;
  {
    const at::NoGradGuard no_grad;
    off = worker().rpc_async<&waits>("worker1", "worker0");
    own = worker().rpc_async<&records_all_the_same>("worker1", "worker0");
  }
  on = worker().rpc_async<&waits>("worker1", "worker0");
  EXPECT_EQ(off.get(), (std::vector<int>{0, 0}));
  EXPECT_EQ(on.get(), (std::vector<int>{1, 1}));
  EXPECT_EQ(own.get(), (std::vector<int>{1, 1, 1}));
}

TEST_F(GradMode, CALL9_WhatAFunctionLeavesBehindIsPutBack) {
  EXPECT_TRUE(worker().rpc_sync<&forgets_to_set_it_back>("worker1"));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(worker().rpc_sync<&records>("worker1"));
}

TEST_F(GradMode, CALL17_MethodsConstructorsAndContinuationsRunInIt) {
  const RRef<Part> recording = worker().remote<Part>("worker1");
  EXPECT_TRUE(recording.rpc_sync<&Part::made_recording>());
  EXPECT_TRUE(recording.rpc_sync<&Part::method>());
  EXPECT_EQ(recording.rpc_sync<&Part::later>("worker0"), (std::vector<int>{1, 1}));
  const at::NoGradGuard no_grad;
  const RRef<Part> part = worker().remote<Part>("worker1");
  EXPECT_FALSE(part.rpc_sync<&Part::made_recording>());
  EXPECT_FALSE(part.rpc_sync<&Part::method>());
  EXPECT_FALSE(part.remote<&Part::method>().to_here());
  EXPECT_FALSE(worker().remote<&records>("worker1").to_here());
  EXPECT_EQ(part.rpc_sync<&Part::later>("worker0"), (std::vector<int>{0, 0}));
}

TEST_F(GradMode, CALL17_OperatorsRunInIt) {
  const at::Tensor x = at::ones({2}).requires_grad_();
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::neg", x).requires_grad());
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(worker().rpc_op("worker1", "aten::neg", x).requires_grad());
  EXPECT_FALSE(worker().remote_op("worker1", "aten::neg", x).to_here().requires_grad());
}

TEST_F(GradMode, CALL17_AFetchIsTheSameInEither) {
  const RRef<Part> part = worker().remote<Part>("worker1");
  const RRef<at::Tensor> weight = part.remote<&Part::weight>();
  EXPECT_TRUE(weight.to_here().requires_grad());
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(weight.to_here().requires_grad());
  EXPECT_EQ(job.at(0).last_request().kind, wire::FrameKind::fetch);
  EXPECT_TRUE(job.at(0).last_request().grad_mode);
}

/// Writes down the grad mode in which results are recorded.
class ReplyHook final : public rpc::CallHook {
 public:
  Result<rpc::HookTicket> on_request(const Peer&, rpc::OutRequest&) override { return rpc::HookTicket{}; }
  void on_unsent(rpc::HookTicket) noexcept override {}
  Result<void> on_receive(rpc::InPayload&, CallInfo&) override { return {}; }
  void on_reply(const CallInfo&, rpc::OutReply&) override { seen.push_back(records()); }
  Result<void> on_reply_received(rpc::HookTicket, rpc::InPayload&) override { return {}; }
  void on_reply_dropped(rpc::HookTicket, const Error&) noexcept override {}
  void on_peer_down(const WorkerLife&) noexcept override {}

  std::vector<int> seen;
};

TEST_F(GradMode, CALL17_ResultsAreRecordedInIt) {
  const RRef<Part> part = worker().remote<Part>("worker1");
  ReplyHook hook;
  job.at(1).set_hook(&hook);
  const auto call_all = [&] {
    worker().rpc_sync<&records>("worker1");
    worker().rpc_op("worker1", "aten::neg", at::ones({2}));
    part.rpc_sync<&Part::weight>();
    part.rpc_sync<&Part::weight_later>("worker0");
    part.remote<&Part::weight>().to_here();
    return std::exchange(hook.seen, {});
  };
  EXPECT_EQ(call_all(), (std::vector<int>{1, 1, 1, 1, 1}));
  const at::NoGradGuard no_grad;
  EXPECT_EQ(call_all(), (std::vector<int>{0, 0, 0, 0, 1})) << "the last is a fetch";
  job.at(1).set_hook(nullptr);
}

}  // namespace
}  // namespace caftan::grad_mode_test
