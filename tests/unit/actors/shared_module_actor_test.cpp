// The actor of a shared module: what happens to the module goes to its SharedServer, jobs run on the module's strand
// and come back as events, and what its end leaves. What the server decides: tests/unit/nn/shared_server_test.cpp.
#include "modules/shared_module_actor.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "caftan/transport/stepped_executor.hpp"
#include "exchange_side.hpp"

namespace caftan::actors::shared_module_actor_test {
namespace {

namespace event = nn::shared_event;
using nn::ConsistencyMode;
using nn::ConsistencyOptions;

const at::Tensor& weight() {
  static const at::Tensor tensor = at::ones({2}).requires_grad_();
  return tensor;
}
struct Net {
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight()}}; }
};

class SharedModuleActorTest : public ::testing::Test {
 protected:
  SharedModuleActorTest() {
    const at::NoGradGuard no_grad;
    weight().fill_(1);
  }
  ~SharedModuleActorTest() override {
    caf::anon_send_exit(actor_, caf::exit_reason::kill);
    actor_ = nullptr;
    executor_.run();
  }
  void share(const ConsistencyOptions& consistency) {
    auto owned = nn::OwnedShared::make(object_, {},
                                       {.consistency = consistency, .trainers = 2, .algorithm = optim::SGD{.lr = 1}},
                                       CallSite(std::weak_ptr<rpc::Caller>()))
                     .value();
    weak_ = owned;
    actor_ = side_.host.spawn(shared_module_actor, &executor_, std::move(owned));
  }
  void send(nn::SharedEvent happened) {
    caf::anon_send(actor_, SharedModuleMessage{std::make_shared<nn::SharedEvent>(std::move(happened))});
  }
  static ContextId context(std::uint32_t trainer) { return {WorkerId{trainer}, Incarnation{1}, 1}; }
  Future<nn::Reading> open(std::uint32_t trainer) {
    Promise<nn::Reading> promise;
    Future<nn::Reading> reading = promise.future();
    send(event::Open{context(trainer), {trainer}, std::move(promise)});
    return reading;
  }
  Future<nn::StepResult> step(std::uint32_t trainer, double gradient) {
    autograd::GradientBook book;
    {
      const at::NoGradGuard no_grad;
      book.add(weight(), at::full({2}, gradient));
    }
    Promise<nn::StepResult> promise;
    Future<nn::StepResult> done = promise.future();
    send(event::Step{context(trainer), {trainer}, 1, std::move(book), std::move(promise)});
    return done;
  }

  transport::SteppedExecutor executor_{1};
  remote::ActorsOfSide side_{executor_, remote::MessageRegistry(), WorkerId{0}};
  const std::shared_ptr<rpc::HostedObject> object_ =
      rpc::make_hosted<nn::ServedModule>(RRefId{WorkerId{0}, Incarnation{1}, 1}, executor_, std::make_shared<Net>());
  std::weak_ptr<nn::OwnedShared> weak_;
  caf::actor actor_;
};

TEST_F(SharedModuleActorTest, CM19_JobsRunOnTheStrandOfTheModuleAndStepsOneAfterTheOther) {
  share({.mode = ConsistencyMode::locked});
  Future<nn::Reading> first = open(0), second = open(1);
  executor_.run();
  EXPECT_TRUE(first.ready());
  Future<nn::StepResult> one = step(0, 0.5);
  object_->strand().run([&] {
    executor_.run();
    EXPECT_FALSE(one.ready()) << "the turn of the module is taken";
  });
  executor_.run();
  EXPECT_EQ(one.get().version.value, 1U);
  EXPECT_TRUE(second.ready());
  Future<nn::StepResult> two = step(1, 0.25);
  executor_.run();
  EXPECT_EQ(two.get().version.value, 2U);
  EXPECT_TRUE(weight().detach().equal(at::full({2}, 0.25)));
}

TEST_F(SharedModuleActorTest, ACopyOfAWorkerThatHasEndedIsAnError) {
  share({.mode = ConsistencyMode::versioned});
  Future<nn::Reading> reading = open(0);
  executor_.run();
  EXPECT_EQ(reading.result().error().code(), Errc::shut_down);
}

TEST_F(SharedModuleActorTest, ItEndsWithTheLastReferenceToItsControl) {
  share({.mode = ConsistencyMode::locked});
  Future<nn::Reading> first = open(0), waits = open(1);
  executor_.run();
  caf::anon_send(actor_, SharedModuleMessage{});
  executor_.run();
  EXPECT_EQ(waits.result().error().code(), Errc::broken_promise);
  EXPECT_TRUE(first.result());
  EXPECT_TRUE(weak_.expired());
}

}  // namespace
}  // namespace caftan::actors::shared_module_actor_test
