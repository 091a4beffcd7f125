// The actor of an autograd context: which messages it sends, what it asks of its worker, and what ends its passes and
// the actor itself.
#include "autograd/autograd_context_actor.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "exchange_pair.hpp"
#include "idle_context_host.hpp"

namespace caftan::actors::autograd_context_actor_test {
namespace {

using autograd::PassNumber;
using Names = std::vector<std::string>;

constexpr WorkerLife kSelf{WorkerId{0}, Incarnation{1}};
constexpr WorkerLife kFar{WorkerId{1}, Incarnation{2}};
constexpr ContextId kOurs{kSelf.id, kSelf.incarnation, 1};
constexpr ContextId kTheirs{kFar.id, kFar.incarnation, 1};
constexpr AutogradMessageId kReceived{kFar.id, kFar.incarnation, 9};

/// A worker with one context and one peer. It keeps what the context's actor asks for.
class ScriptedWorker final : public ContextPorts {
 public:
  ScriptedWorker(transport::SteppedExecutor& executor, const ExchangePair& pair) : executor_(executor), pair_(pair) {}

  WorkerLife self() const noexcept override { return kSelf; }
  const std::string& name() const noexcept override { return name_; }
  base::Executor& executor() override { return executor_; }
  void log(const std::string& line) const override { ADD_FAILURE() << line; }
  std::string peer_name(WorkerId) override { return "b"; }
  caf::strong_actor_ptr proxy(const WorkerLife& peer, const remote::Address& address) override {
    return peer == kFar ? pair_.proxy(address) : nullptr;
  }
  caf::actor recv_function(const ContextId&, AutogradMessageId) override { return function; }
  void drop_functions(const ContextId&) override { ++dropped; }
  void job_begins(const ContextId&) noexcept override { ++jobs; }
  void job_ends(const ContextId&) noexcept override { --jobs; }
  autograd::ReleasedRange context_over(const ContextId&) override {
    is_over = true;
    return {1, 1};
  }
  void context_ended(const ContextId&) override { has_ended = true; }
  void learn_released(const WorkerLife& from, const autograd::Release&) override { EXPECT_EQ(from, kFar); }
  std::optional<autograd::Send> refuse(const WorkerLife&, const autograd::PassMessage&) const override {
    return std::nullopt;
  }

  caf::actor function;
  int dropped = 0;
  int jobs = 0;
  bool is_over = false;
  bool has_ended = false;

 private:
  transport::SteppedExecutor& executor_;
  const ExchangePair& pair_;
  const std::string name_ = "a";
};

class AutogradContextActorTest : public ::testing::Test {
 protected:
  AutogradContextActorTest() {
    pair_.far_names.actor = pair_.far->host.spawn<Recorder<PassEnvelope>>(sent_);
    worker_.function = pair_.near->host.spawn<Recorder<ShipGradient>>(shipped_);
  }
  ~AutogradContextActorTest() override {
    sender_ = nullptr;
    for (caf::actor* one : {&actor_, &pair_.far_names.actor, &worker_.function}) {
      if (*one) caf::anon_send_exit(*one, caf::exit_reason::kill);
      *one = nullptr;
    }
    executor_.run();
  }

  void spawn(const ContextId& context) {
    record_ = host_.make_record(context);
    sender_ = pair_.proxy(remote::Address::of(context));
    actor_ = pair_.near->host.spawn(autograd_context_actor, &worker_, record_);
    executor_.run();
  }
  template <class Event>
  void send_event(Event event) {
    caf::anon_send(actor_, ContextEvent{std::move(event)});
    executor_.run();
  }
  /// A message arrives from the context's actor at the far worker.
  void receive(autograd::PassMessage message) {
    caf::actor_cast<caf::strong_actor_ptr>(actor_)->enqueue(
        sender_, caf::make_message_id(), caf::make_message(PassEnvelope{std::move(message)}), nullptr);
    executor_.run();
  }
  /// Returns the kinds of the messages that were sent to the far worker since the last look.
  Names sent() {
    Names names;
    for (const PassEnvelope& envelope : sent_) {
      const std::string line = autograd::to_string(envelope.message);
      names.push_back(line.substr(0, line.find(' ')));
    }
    sent_.clear();
    return names;
  }
  static autograd::PassId pass(const ContextId& context) { return {context, PassNumber{1}}; }

  /// Starts a pass from `root`, and returns its outcome to be.
  Future<void> start(const at::Tensor& root, base::TimePoint deadline = base::kNever) {
    autograd::PassStart start;
    start.engine = autograd::Engine::begin({.context = record_->id()}).value();
    const std::vector<at::Tensor> roots{root};
    EXPECT_TRUE(start.engine->add_roots(roots));
    start.deadline = deadline;
    state_ = std::make_shared<rpc::FutureState<void>>(std::weak_ptr<rpc::Caller>());
    Future<void> outcome(state_);
    send_event(context_event::Start{std::make_shared<autograd::PassStart>(std::move(start)),
                                    std::make_shared<PassPromise>(state_, "a")});
    return outcome;
  }
  /// Returns a root behind a tensor that the far worker sent: a pass from it waits for that worker.
  at::Tensor far_root() const {
    std::vector<at::Tensor> tensors{at::ones({2})};
    const std::vector<std::uint8_t> recorded{1};
    EXPECT_TRUE(autograd::record_received({record_->id(), kReceived, kFar.id, 1}, tensors, recorded));
    return tensors[0].sum();
  }
  /// Records that twice `leaf_` was sent to the far worker.
  AutogradMessageId send_leaf() {
    const AutogradMessageId message = record_->next_message().value();
    std::vector<std::uint8_t> recorded;
    const std::vector<at::Tensor> tensors{leaf_ * 2};
    auto function = autograd::record_sent({record_->id(), message, kFar.id, 1}, tensors, recorded);
    EXPECT_TRUE(record_->add_sent(std::move(function), kFar, 8));
    return message;
  }
  /// The far worker begins a pass of this worker's context, and marks `message`.
  void mark(const AutogradMessageId& message) {
    receive(autograd::PassOpen{kOurs});
    receive(autograd::Mark{header(), {message}});
  }
  static autograd::PassHeader header() { return {pass(kOurs), {}, kFar}; }
  /// Puts the far worker's gradients of `message`, or an error, into the context's record, and reports their arrival to
  /// the context's actor.
  void deliver(const AutogradMessageId& message, Result<std::vector<at::Tensor>> gradients, std::uint64_t bytes = 8) {
    record_->deliver(PassNumber{1}, message, std::move(gradients));
    send_event(context_event::GradientArrived{kFar, autograd::Grad{header(), message}, bytes});
  }

  transport::SteppedExecutor executor_{1};
  ExchangePair pair_{executor_};
  ScriptedWorker worker_{executor_, pair_};
  test::IdleContextHost host_{kSelf};
  std::vector<PassEnvelope> sent_;
  std::vector<ShipGradient> shipped_;
  at::Tensor leaf_ = at::ones({2}).requires_grad_();
  std::shared_ptr<rpc::FutureState<void>> state_;
  std::shared_ptr<autograd::ContextRecord> record_;
  caf::strong_actor_ptr sender_;
  caf::actor actor_;
};

TEST_F(AutogradContextActorTest, JoinsAtTheHomeOfItsContext) {
  spawn(kTheirs);
  EXPECT_EQ(sent(), Names{"Join"});
}

TEST_F(AutogradContextActorTest, TheHomeReleasesTheWorkersThatJoinedAndEnds) {
  spawn(kOurs);
  EXPECT_EQ(sent(), Names());
  receive(autograd::Join{kOurs});
  send_event(context_event::Release{});
  EXPECT_EQ(sent(), Names{"Release"});
  EXPECT_TRUE(worker_.is_over);
  EXPECT_TRUE(worker_.has_ended);
  EXPECT_TRUE(record_->is_over());
}

TEST_F(AutogradContextActorTest, OnlyTheHomeReleases) {
  spawn(kTheirs);
  send_event(context_event::Release{});
  EXPECT_FALSE(worker_.is_over);
}

TEST_F(AutogradContextActorTest, TheEndOfTheHomesActorEndsTheContext) {
  spawn(kTheirs);
  caf::anon_send_exit(pair_.far_names.actor, caf::exit_reason::kill);
  executor_.run();
  EXPECT_TRUE(worker_.is_over);
  EXPECT_TRUE(worker_.has_ended);
}

TEST_F(AutogradContextActorTest, RunsAPassThatStaysHere) {
  spawn(kOurs);
  auto outcome = start((leaf_ * 3).sum());
  ASSERT_TRUE(outcome.ready());
  EXPECT_TRUE(outcome.result());
  EXPECT_EQ(record_->gradients().value().of(leaf_)[0].item<double>(), 3);
  EXPECT_EQ(sent(), Names());
  EXPECT_EQ(worker_.jobs, 0);
  EXPECT_EQ(worker_.dropped, 1);
}

TEST_F(AutogradContextActorTest, DA1_ASecondPassIsBusy) {
  spawn(kOurs);
  auto first = start(far_root());
  const auto state = state_;
  auto second = start(far_root());
  EXPECT_EQ(second.result().error().code(), Errc::pass_busy);
  EXPECT_FALSE(first.ready());
  send_event(context_event::Cancelled{state});
  EXPECT_EQ(first.result().error().code(), Errc::cancelled);
}

TEST_F(AutogradContextActorTest, MarksThenShipsWhatItsGraphProduces) {
  spawn(kOurs);
  auto outcome = start(far_root());
  EXPECT_EQ(sent(), Names{"Mark"});
  EXPECT_TRUE(shipped_.empty());
  receive(autograd::Report{pass(kOurs), {kReceived}, {}, {}, false});
  ASSERT_EQ(shipped_.size(), 1U);
  EXPECT_EQ(shipped_[0].to, kFar);
  EXPECT_EQ(shipped_[0].grad.message, kReceived);
  EXPECT_TRUE(shipped_[0].encoded);
  receive(autograd::Done{pass(kOurs)});
  EXPECT_TRUE(outcome.result());
  EXPECT_EQ(sent(), Names{"End"});
}

TEST_F(AutogradContextActorTest, ADeadlineEndsThePassThatWaits) {
  spawn(kOurs);
  auto outcome = start(far_root(), executor_.clock().now() + std::chrono::seconds(1));
  EXPECT_FALSE(outcome.ready());
  executor_.advance(std::chrono::seconds(1));
  EXPECT_EQ(outcome.result().error().code(), Errc::timeout);
}

TEST_F(AutogradContextActorTest, ADeadlineOfAnEarlierPassEndsNothing) {
  spawn(kOurs);
  auto first = start((leaf_ * 3).sum(), executor_.clock().now() + std::chrono::seconds(1));
  EXPECT_TRUE(first.result());
  auto second = start(far_root());
  executor_.advance(std::chrono::seconds(1));
  EXPECT_FALSE(second.ready());
  send_event(context_event::Cancelled{state_});
  EXPECT_EQ(second.result().error().code(), Errc::cancelled);
}

TEST_F(AutogradContextActorTest, TheLossOfAPeerFailsThePassThatNeedsIt) {
  spawn(kOurs);
  auto outcome = start(far_root());
  send_event(context_event::PeerDown{kFar});
  EXPECT_EQ(outcome.result().error().code(), Errc::peer_down);
}

TEST_F(AutogradContextActorTest, DA24_AGradientThatWasNotSentFailsThePass) {
  spawn(kOurs);
  auto outcome = start(far_root());
  receive(autograd::Report{pass(kOurs), {kReceived}, {}, {}, false});
  send_event(context_event::NotSent{PassNumber{1}, Error(Errc::limit_exceeded, "too large")});
  EXPECT_EQ(outcome.result().error().code(), Errc::limit_exceeded);
}

TEST_F(AutogradContextActorTest, TakesPartInAPassOfAnotherWorker) {
  spawn(kOurs);
  const AutogradMessageId message = send_leaf();
  mark(message);
  EXPECT_EQ(sent(), (Names{"Granted", "Report"}));
  deliver(message, std::vector<at::Tensor>{at::ones({2})});
  EXPECT_EQ(sent(), Names{"Done"});
  EXPECT_TRUE(record_->gradients().value().empty()) << "nothing is booked before the pass is decided";
  receive(autograd::Decide{pass(kOurs), {}});
  const Names decided = sent();
  EXPECT_EQ(std::count(decided.begin(), decided.end(), "Decided"), 1);
  EXPECT_EQ(record_->gradients().value().of(leaf_)[0].item<double>(), 2);
  EXPECT_EQ(worker_.dropped, 1);
  EXPECT_EQ(worker_.jobs, 0);
}

TEST_F(AutogradContextActorTest, AnInvalidGradientFailsThePass) {
  spawn(kOurs);
  const AutogradMessageId message = send_leaf();
  mark(message);
  sent();
  deliver(message, Error(Errc::invalid_gradient, "of other sizes"));
  EXPECT_EQ(sent(), Names{"Fail"});
}

TEST_F(AutogradContextActorTest, DA17_TheReportedBytesOfGradientsAreBounded) {
  spawn(kOurs);
  const AutogradMessageId message = send_leaf();
  mark(message);
  sent();
  deliver(message, std::vector<at::Tensor>{at::ones({2})}, (std::uint64_t{16} << 30) + 1);
  EXPECT_EQ(sent(), Names{"Fail"});
}

TEST_F(AutogradContextActorTest, DA25_WhatAPassDidNotTakeGoesWithIt) {
  spawn(kOurs);
  const AutogradMessageId message = send_leaf();
  mark(message);
  record_->deliver(PassNumber{1}, message, std::vector<at::Tensor>{at::ones({2})});
  receive(autograd::Decide{pass(kOurs), Error(Errc::cancelled, "given up")});
  EXPECT_FALSE(record_->take_delivered(PassNumber{1}, message));
}

TEST_F(AutogradContextActorTest, DA9_AGradientOfADecidedPassChangesNothing) {
  spawn(kOurs);
  const AutogradMessageId message = send_leaf();
  mark(message);
  receive(autograd::Decide{pass(kOurs), Error(Errc::cancelled, "given up")});
  sent();
  deliver(message, std::vector<at::Tensor>{at::ones({2})});
  EXPECT_EQ(sent(), Names());
  EXPECT_TRUE(record_->gradients().value().empty());
  EXPECT_EQ(worker_.jobs, 0);
}

TEST_F(AutogradContextActorTest, FinishFailsThePassThatWaitsWithItsReason) {
  spawn(kOurs);
  auto outcome = start(far_root());
  send_event(context_event::Finish{Error(Errc::shut_down, "the worker leaves")});
  EXPECT_EQ(outcome.result().error().code(), Errc::shut_down);
  EXPECT_TRUE(worker_.has_ended);
}

TEST_F(AutogradContextActorTest, AKillFailsThePassAndLeavesNoJob) {
  spawn(kOurs);
  auto outcome = start(far_root());
  EXPECT_EQ(worker_.jobs, 1);
  caf::anon_send_exit(actor_, caf::exit_reason::kill);
  executor_.run();
  EXPECT_EQ(outcome.result().error().code(), Errc::context_released);
  EXPECT_TRUE(worker_.has_ended);
  EXPECT_TRUE(record_->is_over());
  EXPECT_EQ(worker_.jobs, 0);
}

}  // namespace
}  // namespace caftan::actors::autograd_context_actor_test
