// References to an object's tensors, results and fetches: what they copy of the object, and whose turn it is meanwhile.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caftan/rpc/call_hook.hpp"
#include "caftan/tensor/operators.hpp"
#include "fake_caller.hpp"
#include "torch_memory.hpp"

namespace caftan::object_test {
namespace {

using test::FakeJob;

static_assert(rpc::kHoldsTensors<std::map<std::string, std::optional<at::Tensor>>>);
static_assert(rpc::kHoldsTensors<std::pair<int, std::array<at::Tensor, 2>>>);
static_assert(!rpc::kHoldsTensors<std::vector<RRef<at::Tensor>>> && !rpc::kHoldsTensors<std::string>);

constexpr std::int64_t kLarge = 65536;  // more floats than a message copies without being asked

int add(int a, int b) { return a + b; }

class Model {
 public:
  explicit Model(Worker& worker) : weight_(at::zeros({kLarge})), made_(worker.make_rref(weight_)) {}

  at::Tensor weight() const { return weight_; }
  std::vector<at::Tensor> weights() const { return {weight_, weight_.slice(0, 0, 2)}; }
  Future<at::Tensor> later() {
    Future<at::Tensor> kept = pending_.future().then([this](Result<void>) { return weight_; });
    return kept;
  }
  /// Writes `value` into the weight, and completes the future of `later` in the middle of this write.
  void write(double value) {
    weight_.slice(0, 0, kLarge / 2).fill_(value);
    pending_.set({});
    weight_.slice(0, kLarge / 2).fill_(value);
  }
  RRef<at::Tensor> made_in_constructor() const { return made_; }
  int calls() { return ++calls_; }

  at::Tensor fresh() const { return at::ones({kLarge}); }
  at::Tensor view_of_fresh() const { return at::ones({kLarge}).view({2, kLarge / 2}).t(); }
  at::Tensor same(const at::Tensor& tensor) const { return tensor; }
  at::Tensor expanded() const { return weight_.slice(0, 0, 1).expand({4 << 20}); }
  at::Tensor every_other() const { return weight_.view({2, kLarge / 2}).slice(1, 0, kLarge / 2, 2).t(); }
  at::Tensor windows() const { return weight_.unfold(0, 8, 2); }

  /// Exclusive method whose continuation runs after the method has returned and then calls the object.
  void go_on_later(Worker& worker, const RRef<Model>& self) {
    went_on_ = worker.rpc_async<&add>("worker1", 1, 2).then([self](Result<int>) -> Result<int> {
      return self.try_rpc_sync<&Model::calls>();
    });
  }
  int what_went_on() { return std::move(went_on_).get(); }

 private:
  at::Tensor weight_;
  RRef<at::Tensor> made_;
  Promise<void> pending_;
  Future<int> went_on_;
  int calls_ = 0;
};

Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<Model>("model")
      .constructor<Worker&>()
      .method<&Model::weight>("weight")
      .method<&Model::weights>("weights")
      .method<&Model::later>("later")
      .method<&Model::write>("write")
      .method<&Model::made_in_constructor>("made_in_constructor")
      .method<&Model::calls>("calls")
      .method<&Model::fresh>("fresh")
      .method<&Model::view_of_fresh>("view_of_fresh")
      .method<&Model::same>("same")
      .method<&Model::expanded>("expanded")
      .method<&Model::every_other>("every_other")
      .method<&Model::windows>("windows")
      .exclusive<&Model::go_on_later>("go_on_later")
      .method<&Model::what_went_on>("what_went_on");
  return registry;
}

/// The model is at worker0, where the tests can look into it.
struct Objects : ::testing::Test {
  Objects() {
    for (int i = 0; i < 2; ++i) job.add(make_registry());
    model = job.at(0).worker().remote<Model>("worker0");
    strand = strand_of(model);
  }

  template <class T>
  std::shared_ptr<rpc::Strand> strand_of(const RRef<T>& rref) {
    return rref.handle()->local_value().get()->shared_strand();
  }

  FakeJob job;
  RRef<Model> model;
  std::shared_ptr<rpc::Strand> strand;
};

// ---- turns

TEST_F(Objects, A4_AResultThatStaysAtTheOwnerTakesItsTurnsWithTheObject) {
  EXPECT_EQ(strand_of(model.remote<&Model::weight>()), strand);
  EXPECT_EQ(strand_of(model.remote<&Model::weights>()), strand);
  EXPECT_NE(strand_of(model.remote<&Model::calls>()), strand) << "a number is no part of the object";
}

TEST_F(Objects, A4_AFutureResultThatStaysAtTheOwnerTakesItsTurnsWithTheObject) {
  const RRef<at::Tensor> later = model.remote<&Model::later>();
  job.executor.run_until_idle();
  model.rpc_sync<&Model::write>(1.0);
  EXPECT_EQ(strand_of(later), strand);
}

TEST_F(Objects, A4_AReferenceMadeInTheConstructorTakesItsTurnsWithTheObject) {
  EXPECT_EQ(strand_of(model.rpc_sync<&Model::made_in_constructor>()), strand);
  EXPECT_EQ(rpc::Strand::held_here(), nullptr) << "the constructor's turn is over";
}

TEST_F(Objects, A4_ATensorThatAFutureBringsIsNotTakenInTheMiddleOfAMethod) {
  Future<at::Tensor> later = model.rpc_async<&Model::later>();
  job.executor.run_until_idle();
  model.rpc_sync<&Model::write>(1.0);
  EXPECT_TRUE(later.get().equal(at::ones({kLarge})));
}

/// Notes on whose turn replies leave.
class TurnHook final : public rpc::CallHook {
 public:
  Result<rpc::HookTicket> on_request(const Peer&, rpc::OutRequest&) override { return rpc::HookTicket{1}; }
  void on_unsent(rpc::HookTicket) noexcept override {}
  Result<void> on_receive(rpc::InPayload&, CallInfo&) override { return {}; }
  void on_reply(const CallInfo&, rpc::OutReply&) override { turns.push_back(rpc::Strand::held_here()); }
  Result<void> on_reply_received(rpc::HookTicket, rpc::InPayload&) override { return {}; }
  void on_reply_dropped(rpc::HookTicket, const Error&) noexcept override {}
  void on_peer_down(const WorkerLife&) noexcept override {}

  std::vector<std::shared_ptr<rpc::Strand>> turns;
};

TEST_F(Objects, A4_TheHookSeesATensorThatAFutureBringsOnTheObjectsTurn) {
  TurnHook hook;
  job.at(0).set_hook(&hook);
  Future<at::Tensor> later = model.rpc_async<&Model::later>();
  job.executor.run_until_idle();
  model.local_value()->write(1.0);  // from outside any turn
  later.get();
  ASSERT_EQ(hook.turns.size(), 1U);
  EXPECT_EQ(hook.turns[0], strand);
  job.at(0).set_hook(nullptr);
}

TEST_F(Objects, B2_WhatAnExclusiveMethodBeganMayCallTheObjectWhenItHasReturned) {
  model.rpc_sync<&Model::go_on_later>(model);
  job.executor.run_until_idle();
  EXPECT_EQ(model.rpc_sync<&Model::what_went_on>(), 1);
}

// ---- memory

TEST_F(Objects, A5_AResultWithoutMemoryForItsCopyIsLimitExceededAndTheTurnIsFree) {
  test::TorchMemory memory(kLarge);
  memory.refuse();
  for (const Error& error : {model.try_rpc_sync<&Model::weight>().error(),
                             model.remote<&Model::weight>().with({}).fetch().result().error()}) {
    EXPECT_EQ(error.code(), Errc::limit_exceeded);
    EXPECT_NE(error.text().find("no memory for a copy of 262144 bytes"), std::string::npos) << error.text();
  }
  EXPECT_EQ(model.rpc_sync<&Model::calls>(), 1);
  memory.allow();
  EXPECT_TRUE(model.rpc_sync<&Model::weight>().equal(at::zeros({kLarge})));
}

TEST_F(Objects, B6_AResultThatNothingElseHoldsIsNotCopied) {
  test::TorchMemory memory(kLarge);
  model.rpc_sync<&Model::fresh>();
  EXPECT_EQ(memory.blocks(), 1) << "the result itself";
  model.rpc_sync<&Model::view_of_fresh>();
  EXPECT_EQ(memory.blocks(), 2) << "a view holds its base, which nothing else does";
  const at::Tensor given = at::ones({kLarge});
  EXPECT_EQ(memory.blocks(), 3);
  model.rpc_sync<&Model::same>(given);
  EXPECT_EQ(memory.blocks(), 3) << "an argument that comes back";
  model.rpc_sync<&Model::weight>();
  EXPECT_EQ(memory.blocks(), 4) << "what the object keeps is copied";
}

TEST_F(Objects, H4_AnExpandedResultTravelsAsTheNumberThatItIs) {
  const at::Tensor result = model.rpc_sync<&Model::expanded>();
  EXPECT_EQ(result.sizes(), (at::IntArrayRef{4 << 20}));
  EXPECT_EQ(result.storage().nbytes(), 4U);
  const RRef<at::Tensor> kept = model.remote<&Model::expanded>();
  EXPECT_EQ(kept.with({}).fetch().get().storage().nbytes(), 4U);
}

TEST_F(Objects, H4_ViewsInOneResultOrFetchShareAStorageAtTheReceiver) {
  const auto kept = model.remote<&Model::weights>();
  for (const std::vector<at::Tensor>& both : {model.rpc_sync<&Model::weights>(), kept.with({}).fetch().get()}) {
    both[0].fill_(7);
    EXPECT_TRUE(both[1].equal(at::full({2}, 7.0f)));
  }
}

TEST_F(Objects, H5_ViewsKeepTheirStridesInResultsAndFetches) {
  const at::Tensor weight = model.local_value()->weight();
  weight.copy_(at::arange(kLarge));
  const auto expect_same = [](const at::Tensor& expected, const at::Tensor& result, const RRef<at::Tensor>& kept) {
    const at::Tensor fetched = kept.with({}).fetch().get();
    EXPECT_EQ(result.strides(), expected.strides());
    EXPECT_EQ(fetched.strides(), expected.strides());
    EXPECT_TRUE(result.equal(expected) && fetched.equal(expected));
    EXPECT_FALSE(result.is_alias_of(expected) || fetched.is_alias_of(expected));
  };
  const auto object = model.local_value();
  expect_same(object->every_other(), model.rpc_sync<&Model::every_other>(), model.remote<&Model::every_other>());
  expect_same(object->windows(), model.rpc_sync<&Model::windows>(), model.remote<&Model::windows>());
}

}  // namespace
}  // namespace caftan::object_test
