// The actor of a RecvFunction: ships the gradients of its message, and reports those that are beyond a limit.
#include "autograd/recv_function_actor.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "exchange_pair.hpp"

namespace caftan::actors::recv_function_actor_test {
namespace {

constexpr ContextId kContext{WorkerId{0}, Incarnation{1}, 1};
constexpr AutogradMessageId kMessage{WorkerId{1}, Incarnation{2}, 5};

/// A worker that has one peer, and keeps what the function's actor reports.
class ScriptedWorker final : public RecvFunctionPorts {
 public:
  explicit ScriptedWorker(const ExchangePair& pair) : pair_(pair) {}
  caf::strong_actor_ptr proxy(const WorkerLife& peer, const remote::Address& name) override {
    return peer == pair_.far_life() ? pair_.proxy(name) : nullptr;
  }
  void gradient_not_sent(const autograd::PassId& pass, const Error& error) override {
    passes.push_back(pass);
    errors.push_back(error);
  }

  std::vector<autograd::PassId> passes;
  std::vector<Error> errors;

 private:
  const ExchangePair& pair_;
};

class RecvFunctionActorTest : public ::testing::Test {
 protected:
  ~RecvFunctionActorTest() override {
    for (caf::actor* one : {&actor_, &pair_->far_names.actor}) {
      if (*one) caf::anon_send_exit(*one, caf::exit_reason::kill);
      *one = nullptr;
    }
    executor_.run();
    got_.clear();
  }

  void connect(const net::Limits& far_takes = {}) {
    pair_ = std::make_unique<ExchangePair>(executor_, far_takes);
    pair_->far_names.actor = pair_->far->host.spawn<Recorder<GradientMessage>>(got_);
    worker_ = std::make_unique<ScriptedWorker>(*pair_);
    actor_ = pair_->near->host.spawn(recv_function_actor, worker_.get(), kMessage);
  }
  void ship(const WorkerLife& to) {
    const std::vector<at::Tensor> gradients{at::ones({64})};
    autograd::Grad grad;
    grad.header.pass = {kContext, autograd::PassNumber{1}};
    grad.message = kMessage;
    caf::anon_send(actor_,
                   ShipGradient{to, std::move(grad),
                                std::make_shared<tensor::EncodedTensors>(tensor::encode_tensors(gradients).value())});
    executor_.run();
  }

  transport::SteppedExecutor executor_{1};
  std::vector<GradientMessage> got_;
  std::unique_ptr<ExchangePair> pair_;
  std::unique_ptr<ScriptedWorker> worker_;
  caf::actor actor_;
};

TEST_F(RecvFunctionActorTest, ShipsTheGradientToTheSendFunction) {
  connect();
  ship(pair_->far_life());
  ASSERT_EQ(got_.size(), 1U);
  EXPECT_EQ(got_[0].grad.message, kMessage);
  EXPECT_TRUE(got_[0].received);
  ASSERT_EQ(got_[0].tensors.size(), 1U);
  EXPECT_EQ(got_[0].tensors[0].numel(), 64);
  EXPECT_TRUE(worker_->errors.empty());
}

TEST_F(RecvFunctionActorTest, DA24_ReportsAGradientBeyondALimitWithItsMessage) {
  net::Limits small;
  small.tensors = 16;
  connect(small);
  ship(pair_->far_life());
  EXPECT_TRUE(got_.empty());
  ASSERT_EQ(worker_->errors.size(), 1U);
  EXPECT_EQ(worker_->passes[0], (autograd::PassId{kContext, autograd::PassNumber{1}}));
  EXPECT_EQ(worker_->errors[0].code(), Errc::limit_exceeded);
  EXPECT_NE(worker_->errors[0].text().find("the gradients of message " + to_string(kMessage)), std::string::npos);
}

TEST_F(RecvFunctionActorTest, LeavesALostPeerToTheContextsActor) {
  connect();
  ship({WorkerId{7}, Incarnation{7}});
  pair_->near->session->abort(Error(Errc::peer_down, "cut"));
  executor_.run();
  ship(pair_->far_life());
  EXPECT_TRUE(got_.empty());
  EXPECT_TRUE(worker_->errors.empty());
}

}  // namespace
}  // namespace caftan::actors::recv_function_actor_test
