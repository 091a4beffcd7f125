// The actor of a SendFunction: checks the gradients that arrive for its message, delivers them to the context's record,
// and reports that to the context's actor.
#include "autograd/send_function_actor.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "caftan/autograd/internal/nodes.hpp"
#include "exchange_pair.hpp"
#include "idle_context_host.hpp"

namespace caftan::actors::send_function_actor_test {
namespace {

constexpr ContextId kContext{WorkerId{0}, Incarnation{1}, 1};
constexpr AutogradMessageId kMessage{WorkerId{0}, Incarnation{1}, 5};

/// A message with one recorded tensor of two elements.
class SendFunctionActorTest : public ::testing::Test {
 protected:
  SendFunctionActorTest() {
    std::vector<std::uint8_t> recorded;
    const std::vector<at::Tensor> tensors{at::ones({2}).requires_grad_()};
    context_ = pair_.near->host.spawn<Recorder<ContextEvent>>(events_);
    actor_ = pair_.near->host.spawn(send_function_actor,
                                    autograd::record_sent({kContext, kMessage, WorkerId{1}, 1}, tensors, recorded),
                                    record_, context_);
    sender_ = pair_.proxy(remote::Address::recv_function(kMessage));
  }
  ~SendFunctionActorTest() override {
    sender_ = nullptr;
    for (caf::actor* one : {&actor_, &context_}) {
      caf::anon_send_exit(*one, caf::exit_reason::kill);
      *one = nullptr;
    }
    executor_.run();
  }

  void receive(std::vector<at::Tensor> gradients, Result<void> received = {}) {
    GradientMessage message;
    message.grad.message = kMessage;
    message.grad.header.pass = {kContext, autograd::PassNumber{1}};
    message.tensors = std::move(gradients);
    message.received = std::move(received);
    caf::actor_cast<caf::strong_actor_ptr>(actor_)->enqueue(sender_, caf::make_message_id(),
                                                            caf::make_message(std::move(message)), nullptr);
    executor_.run();
  }
  const context_event::GradientArrived& arrived() const {
    return std::get<context_event::GradientArrived>(events_.at(0).event);
  }
  Result<std::vector<at::Tensor>> delivered() { return record_->take_delivered(autograd::PassNumber{1}, kMessage); }

  transport::SteppedExecutor executor_{1};
  ExchangePair pair_{executor_};
  test::IdleContextHost host_{WorkerLife{WorkerId{0}, Incarnation{1}}};
  std::shared_ptr<autograd::ContextRecord> record_ = host_.make_record(kContext);
  std::vector<ContextEvent> events_;
  caf::actor context_;
  caf::actor actor_;
  caf::strong_actor_ptr sender_;
};

TEST_F(SendFunctionActorTest, DA25_DeliversAGradientThatFitsAndReportsIt) {
  receive({at::ones({2})});
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(arrived().from, pair_.far_life());
  EXPECT_EQ(arrived().grad.message, kMessage);
  EXPECT_EQ(arrived().bytes, 8U);
  const auto gradients = delivered();
  ASSERT_TRUE(gradients);
  EXPECT_EQ(gradients->size(), 1U);
}

TEST_F(SendFunctionActorTest, AGradientThatDoesNotFitIsInvalid) {
  receive({at::ones({3})});
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(arrived().bytes, 12U);
  EXPECT_EQ(delivered().error().code(), Errc::invalid_gradient);
}

TEST_F(SendFunctionActorTest, WI22_TensorsForWhichThereWasNoMemoryAreNotChecked) {
  receive({}, Error(Errc::limit_exceeded, "no memory"));
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(delivered().error().code(), Errc::limit_exceeded);
}

TEST_F(SendFunctionActorTest, AGradientWhoseSessionHasEndedIsDropped) {
  sender_ = nullptr;
  receive({at::ones({2})});
  EXPECT_TRUE(events_.empty());
  EXPECT_FALSE(delivered());
}

}  // namespace
}  // namespace caftan::actors::send_function_actor_test
