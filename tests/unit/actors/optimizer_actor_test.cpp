// The actor of an optimizer: one request at a time, repeats and refusals by the ledger, and what its end leaves.
#include "optim/optimizer_actor.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "caftan/transport/stepped_executor.hpp"
#include "exchange_side.hpp"

namespace caftan::actors::optimizer_actor_test {
namespace {

using optim::Prepared;
using optim::StepDone;
using optim::StepNumber;
namespace request = optim::optimizer_request;

/// Plain gradient descent over one parameter of two zeros, with the learning rate 1.
class OptimizerActorTest : public ::testing::Test {
 protected:
  OptimizerActorTest() {
    optim::OptimizerSpec spec;
    spec.groups.push_back({std::vector<RRef<at::Tensor>>(1), optim::SGD{}});
    const RRefId id{WorkerId{0}, Incarnation{1}, 1};
    auto optimizer =
        optim::OwnedOptimizer::make(spec, {rpc::make_hosted<at::Tensor>(id, executor_, parameter_)}).value();
    actor_ = side_.host.spawn(optimizer_actor, &executor_, std::move(optimizer));
  }
  ~OptimizerActorTest() override {
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = nullptr;
    executor_.run();
  }

  void send(optim::OptimizerRequest request) {
    caf::anon_send(
        actor_,
        OptimizerEvent{optimizer_event::Requested{std::make_shared<optim::OptimizerRequest>(std::move(request))}});
  }
  static optim::StepOrder order(std::uint64_t number) { return {StepNumber{number}, {1.0}, false}; }
  /// Steps by a gradient of ones.
  Future<StepDone> step(std::uint64_t number) {
    Promise<StepDone> promise;
    Future<StepDone> done = promise.future();
    send(request::Step{order(number), {at::ones({2})}, std::move(promise)});
    return done;
  }
  Future<Prepared> prepare(std::uint64_t number) {
    Promise<Prepared> promise;
    Future<Prepared> prepared = promise.future();
    send(request::Prepare{order(number), {at::ones({2})}, std::move(promise)});
    return prepared;
  }
  Future<StepDone> commit(std::uint64_t number, double scale) {
    Promise<StepDone> promise;
    Future<StepDone> done = promise.future();
    send(request::Commit{StepNumber{number}, scale, std::move(promise)});
    return done;
  }
  Future<void> take_state(std::uint64_t number) {
    Promise<void> promise;
    Future<void> taken = promise.future();
    send(request::TakeState{StepNumber{number}, std::move(promise)});
    return taken;
  }
  double value() const { return parameter_[0].item<double>(); }

  transport::SteppedExecutor executor_{1};
  remote::ActorsOfSide side_{executor_, remote::MessageRegistry(), WorkerId{0}};
  at::Tensor parameter_ = at::zeros({2}).requires_grad_();
  caf::actor actor_;
};

TEST_F(OptimizerActorTest, TakesRequestsInOrderOneAtATime) {
  auto first = step(1);
  auto second = step(2);
  auto late = step(1);
  executor_.run();
  EXPECT_EQ(first.result().value().stepped, 1U);
  EXPECT_EQ(second.result().value().step, StepNumber{2});
  ASSERT_FALSE(late.result());
  EXPECT_EQ(late.result().error().code(), Errc::bad_arguments);
  EXPECT_EQ(value(), -2);
}

TEST_F(OptimizerActorTest, ARepeatedStepGetsTheSameReplyAndStepsNothing) {
  auto first = step(1);
  auto again = step(1);
  executor_.run();
  EXPECT_TRUE(first.result());
  EXPECT_EQ(again.result().value().step, StepNumber{1});
  EXPECT_EQ(value(), -1);
}

TEST_F(OptimizerActorTest, CommitsWhatWasPreparedWithItsScale) {
  auto prepared = prepare(1);
  auto done = commit(1, 0.5);
  executor_.run();
  EXPECT_EQ(prepared.result().value().gradients, 1U);
  EXPECT_TRUE(done.result());
  EXPECT_EQ(value(), -0.5);
}

TEST_F(OptimizerActorTest, AnAbortedStepCannotBeCommitted) {
  auto prepared = prepare(1);
  send(request::Abort{StepNumber{1}});
  auto done = commit(1, 1);
  executor_.run();
  EXPECT_TRUE(prepared.result());
  EXPECT_FALSE(done.result());
  EXPECT_EQ(value(), 0);
}

TEST_F(OptimizerActorTest, TakesAStateOverOnlyAfterItWasStaged) {
  auto too_early = take_state(1);
  Promise<wire::Bytes> saving;
  auto saved = saving.future();
  send(request::Save{std::move(saving)});
  executor_.run();
  EXPECT_EQ(too_early.result().error().code(), Errc::bad_arguments);

  Promise<void> staging;
  auto staged = staging.future();
  send(request::StageState{saved.result().value(), std::move(staging)});
  auto taken = take_state(7);
  auto earlier = step(7);
  auto next = step(8);
  executor_.run();
  EXPECT_TRUE(staged.result());
  EXPECT_TRUE(taken.result());
  EXPECT_FALSE(earlier.result());
  EXPECT_TRUE(next.result());
}

TEST_F(OptimizerActorTest, OP11_AStagedGroupIsSteppedOnceItIsTaken) {
  const at::Tensor later = at::zeros({3}).requires_grad_();
  const auto stage = [&](const at::Tensor& parameter, std::uint64_t number) {
    Promise<void> staging;
    Future<void> staged = staging.future();
    const RRefId id{WorkerId{0}, Incarnation{1}, number};
    optim::OptimizerSpec::Group group{std::vector<RRef<at::Tensor>>(1), optim::SGD{}};
    send(request::StageGroup{
        std::move(group), {rpc::make_hosted<at::Tensor>(id, executor_, parameter)}, std::move(staging)});
    return staged;
  };
  auto same = stage(parameter_, 2);
  auto refused = take_state(0);
  auto staged = stage(later, 3);
  auto taken = take_state(0);
  Promise<StepDone> promise;
  auto done = promise.future();
  send(request::Step{{StepNumber{1}, {1.0, 0.5}, false}, {at::ones({2}), at::ones({3})}, std::move(promise)});
  executor_.run();
  EXPECT_EQ(same.result().error().code(), Errc::bad_arguments);
  EXPECT_EQ(refused.result().error().code(), Errc::bad_arguments);
  EXPECT_TRUE(staged.result());
  EXPECT_TRUE(taken.result());
  EXPECT_EQ(done.result().value().stepped, 2U);
  EXPECT_EQ(value(), -1);
  EXPECT_EQ(later[0].item<double>(), -0.5);
}

TEST_F(OptimizerActorTest, FinishWaitsForWhatWasAsked) {
  auto before = step(1);
  caf::anon_send(actor_, OptimizerEvent{optimizer_event::Finish{}});
  executor_.run();
  auto after = step(2);
  executor_.run();
  EXPECT_TRUE(before.result());
  EXPECT_EQ(after.result().error().code(), Errc::broken_promise);
  EXPECT_EQ(value(), -1);
}

TEST_F(OptimizerActorTest, AKillBreaksThePromisesOfItsRequests) {
  auto running = step(1);
  auto waiting = step(2);
  caf::anon_send_exit(actor_, caf::exit_reason::kill);
  executor_.run();
  EXPECT_EQ(running.result().error().code(), Errc::broken_promise);
  EXPECT_EQ(waiting.result().error().code(), Errc::broken_promise);
}

}  // namespace
}  // namespace caftan::actors::optimizer_actor_test
