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

/// One number under LBFGS with steps of length 1, whose loss is the sum.
class SearchActorTest : public OptimizerActorTest {
 protected:
  SearchActorTest() {
    optim::OptimizerSpec spec;
    spec.groups.push_back({std::vector<RRef<at::Tensor>>(1), optim::LBFGS{.tolerance_grad = 0, .tolerance_change = 0}});
    const RRefId id{WorkerId{0}, Incarnation{1}, 2};
    auto optimizer = optim::OwnedOptimizer::make(spec, {rpc::make_hosted<at::Tensor>(id, executor_, place_)}).value();
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = side_.host.spawn(optimizer_actor, &executor_, std::move(optimizer));
  }
  Future<optim::SearchReply> search(std::uint64_t step, std::uint64_t evaluation, double gradient = 1) {
    Promise<optim::SearchReply> promise;
    Future<optim::SearchReply> reply = promise.future();
    send(request::Search{{StepNumber{step}, evaluation, 1.0 / static_cast<double>(evaluation), {1.0}},
                         {at::full({1}, gradient)},
                         std::move(promise)});
    return reply;
  }
  double place() const { return place_[0].item<double>(); }

  at::Tensor place_ = at::zeros({1}).requires_grad_();
};

TEST_F(SearchActorTest, OP12_EvaluationsMoveTheParametersAndRepeatedOnesDoNot) {
  auto first = search(1, 1);
  auto again = search(1, 1);
  executor_.run();
  EXPECT_TRUE(first.result().value().wants_another);
  EXPECT_EQ(again.result().value().evaluation, 1U);
  EXPECT_EQ(place(), -1);
  auto skipped = search(1, 3);
  auto second = search(1, 2, 0.5);
  auto last = search(1, 3, 0);
  auto repeated = search(1, 3, 7);
  executor_.run();
  EXPECT_EQ(skipped.result().error().code(), Errc::bad_arguments);
  EXPECT_TRUE(second.result().value().wants_another);
  EXPECT_FALSE(last.result().value().wants_another) << "the gradient is 0";
  EXPECT_EQ(last.result().value().stepped, 1U);
  EXPECT_FALSE(repeated.result().value().wants_another);
  EXPECT_EQ(place(), -2);
}

TEST_F(SearchActorTest, OP12_AnAbortPutsTheParametersBackAndOneOfAnotherStepDoesNot) {
  auto first = search(2, 1);
  send(request::Abort{StepNumber{1}});
  executor_.run();
  EXPECT_TRUE(first.result());
  EXPECT_EQ(place(), -1);
  send(request::Abort{StepNumber{2}});
  executor_.run();
  EXPECT_EQ(place(), 0);
  auto late = search(2, 2);
  auto next = search(3, 1);
  executor_.run();
  EXPECT_EQ(late.result().error().code(), Errc::bad_arguments);
  EXPECT_TRUE(next.result());
  EXPECT_EQ(place(), -1);
}

TEST_F(SearchActorTest, OP12_ALaterStepOrASaveBeginsWhereTheStepBegan) {
  auto first = search(1, 1);
  auto later = search(2, 1);
  executor_.run();
  EXPECT_TRUE(first.result());
  EXPECT_TRUE(later.result());
  EXPECT_EQ(place(), -1) << "one step from 0, not two";
  Promise<wire::Bytes> promise;
  auto saved = promise.future();
  send(request::Save{std::move(promise)});
  executor_.run();
  EXPECT_TRUE(saved.result());
  EXPECT_EQ(place(), 0);
}

TEST_F(SearchActorTest, OP12_AFailureOrTheEndOfTheReferencePutsTheParametersBack) {
  auto first = search(1, 1);
  Promise<optim::SearchReply> promise;
  auto failed = promise.future();
  send(request::Search{{StepNumber{1}, 2, 0.5, {1.0}}, {at::ones({2})}, std::move(promise)});
  executor_.run();
  EXPECT_TRUE(first.result());
  EXPECT_EQ(failed.result().error().code(), Errc::bad_arguments) << "a gradient of other sizes";
  EXPECT_EQ(place(), 0);
  auto next = search(2, 1);
  executor_.run();
  EXPECT_TRUE(next.result());
  EXPECT_EQ(place(), -1);
  caf::anon_send(actor_, OptimizerEvent{optimizer_event::Finish{}});
  executor_.run();
  EXPECT_EQ(place(), 0);
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
