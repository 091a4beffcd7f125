// The actor that replies for contexts that are not open here.
#include "autograd/closed_contexts_actor.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "exchange_pair.hpp"

namespace caftan::actors::closed_contexts_actor_test {
namespace {

constexpr ContextId kContext{WorkerId{1}, Incarnation{2}, 1};

/// A worker that refuses with one message, or with none.
class ScriptedWorker final : public ClosedContextsPorts {
 public:
  void learn_released(const WorkerLife& from, const autograd::Release& release) override {
    learned_from.push_back(from);
    EXPECT_EQ(release.context, kContext);
  }
  std::optional<autograd::Send> refuse(const WorkerLife& from, const autograd::PassMessage&) const override {
    if (!reply) return std::nullopt;
    return autograd::Send{from, *reply};
  }

  std::optional<autograd::PassMessage> reply;
  std::vector<WorkerLife> learned_from;
};

class ClosedContextsActorTest : public ::testing::Test {
 protected:
  ClosedContextsActorTest() {
    pair_.far_names.actor = pair_.far->host.spawn<Recorder<PassEnvelope>>(replies_);
    actor_ = pair_.near->host.spawn(closed_contexts_actor, &worker_);
    sender_ = pair_.proxy(remote::Address::of(kContext));
  }
  ~ClosedContextsActorTest() override {
    sender_ = nullptr;
    for (caf::actor* one : {&actor_, &pair_.far_names.actor}) {
      caf::anon_send_exit(*one, caf::exit_reason::kill);
      *one = nullptr;
    }
    executor_.run();
  }

  void receive(autograd::PassMessage message) {
    caf::actor_cast<caf::strong_actor_ptr>(actor_)->enqueue(
        sender_, caf::make_message_id(), caf::make_message(PassEnvelope{std::move(message)}), nullptr);
    executor_.run();
  }

  transport::SteppedExecutor executor_{1};
  ExchangePair pair_{executor_};
  ScriptedWorker worker_;
  std::vector<PassEnvelope> replies_;
  caf::strong_actor_ptr sender_;
  caf::actor actor_;
};

TEST_F(ClosedContextsActorTest, SendsTheReplyToTheSender) {
  worker_.reply = autograd::Release{kContext, {1, 1}};
  receive(autograd::Join{kContext});
  ASSERT_EQ(replies_.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<autograd::Release>(replies_[0].message));
  EXPECT_TRUE(worker_.learned_from.empty());
}

TEST_F(ClosedContextsActorTest, DA13_LearnsFromAReleaseAndRepliesNothing) {
  receive(autograd::Release{kContext, {1, 1}});
  EXPECT_EQ(worker_.learned_from, std::vector<WorkerLife>{pair_.far_life()});
  EXPECT_TRUE(replies_.empty());
}

TEST_F(ClosedContextsActorTest, AMessageOfALostSessionIsDropped) {
  worker_.reply = autograd::Release{kContext, {1, 1}};
  sender_ = nullptr;
  receive(autograd::Join{kContext});
  EXPECT_TRUE(replies_.empty());
}

}  // namespace
}  // namespace caftan::actors::closed_contexts_actor_test
