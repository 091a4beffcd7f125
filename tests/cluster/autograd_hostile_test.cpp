// What a worker of a pass gets that it must not take: forged gradients, passes from inside a node, stale graphs.
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <caf/send.hpp>

#include <functional>

#include "autograd/autograd_host.hpp"
#include "autograd_roles.hpp"
#include "caftan/testing/network.hpp"
#include "pass_frames.hpp"
#include "worker/worker_core.hpp"

namespace caftan::test::autograd_hostile_test {
namespace {

using autograd::Context;
using autograd::ContextView;
using ::testing::HasSubstr;

bool is_gradient(const testing::Frame& frame) {
  const auto message = pass_message(frame);
  return message && std::holds_alternative<autograd::Grad>(*message);
}

/// worker1 has squared x of worker0 and owes its gradient. The network keeps that gradient back, so that the test can
/// send forged ones instead.
class ForgedGradients : public AutogradCluster {
 protected:
  ForgedGradients() {
    here().rpc_sync<&square>("worker2", at::ones({1}));  // worker2 takes part in the context
    net_.link("worker1", "worker0").set_filter([this](const testing::Frame& frame) {
      const bool goes_with_it = !honest_.empty() && frame.header.kind == wire::FrameKind::chunk;
      if (forging_ || (!is_gradient(frame) && !goes_with_it)) return true;
      wire::append(honest_, frame.bytes);
      return false;
    });
    pass_ = context_.backward_async({root_}, {.retain_graph = true});
    run_until_idle();
    EXPECT_FALSE(honest_.empty());
  }

  Worker& here() { return (*this)[0]; }
  AutogradMessageId message() const { return context_.record()->sends().at(0); }
  /// Sends a gradient of `message` from `from`, as the actor of that message's RecvFunction would.
  void forge(std::size_t from, const std::vector<at::Tensor>& tensors, AutogradMessageId message,
             std::uint64_t pass = 1) {
    actors::AutogradHost& host = actors::WorkerCore::of((*this)[from]).autograd_host();
    const WorkerLife to = actors::WorkerCore::of(here()).autograd_host().self();
    autograd::Grad grad{{{context_.id(), autograd::PassNumber{pass}}, {}, to, autograd::Mode::smart, true}, message};
    forging_ = true;
    caf::anon_send(host.recv_function(context_.id(), message),
                   actors::ShipGradient{
                       to, grad, std::make_shared<tensor::EncodedTensors>(tensor::encode_tensors(tensors).value())});
    run_until_idle();
    forging_ = false;
  }
  void expect_refused(const std::string& text) {
    ASSERT_TRUE(pass_.ready()) << "hangs";
    const Result<void> outcome = std::move(pass_).result();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Errc::invalid_gradient) << outcome.error().message();
    EXPECT_THAT(outcome.error().text(), HasSubstr(text));
    EXPECT_TRUE(context_.gradients().empty());
    expect_next_pass(1);
  }
  void expect_unharmed() {
    EXPECT_FALSE(pass_.ready());
    net_.link("worker1", "worker0").inject(honest_);
    run_until_idle();
    ASSERT_TRUE(pass_.ready());
    std::move(pass_).get();
    expect_next_pass(2);
  }
  void expect_next_pass(double passes) {
    net_.link("worker1", "worker0").set_filter(nullptr);
    context_.backward({root_}, {.retain_graph = true});
    EXPECT_EQ(values(context_.gradients().of(x_)), (std::vector<double>{2 * passes, 4 * passes, 6 * passes}));
  }

  const at::Tensor x_ = leaf({1, 2, 3});
  Context context_{here()};
  const at::Tensor root_ = here().rpc_sync<&square>("worker1", x_).sum();
  bool forging_ = false;
  wire::Bytes honest_;
  Future<void> pass_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, ForgedGradients, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(ForgedGradients, OfAnotherCountAreRefused) {
  const at::Tensor one = at::ones({3}, at::kDouble);
  forge(1, {one, one}, message());
  expect_refused("2 gradients for message");
}

TEST_P(ForgedGradients, NoneAtAllIsRefused) {
  forge(1, {}, message());
  expect_refused("0 gradients for message");
}

TEST_P(ForgedGradients, OfAnotherSizeAreRefused) {
  forge(1, {at::ones({1, 3}, at::kDouble)}, message());
  expect_refused("has sizes [1, 3], its tensor has [3]");
}

TEST_P(ForgedGradients, OfAnotherDtypeAreRefused) {
  forge(1, {at::ones({3}, at::kFloat)}, message());
  expect_refused("has dtype Float, its tensor has Double");
}

TEST_P(ForgedGradients, DA16_OfAMessageOfAnotherPeerGoNowhere) {
  forge(2, {at::ones({3}, at::kDouble)}, message());
  expect_unharmed();
}

TEST_P(ForgedGradients, DA16_OfNoMessageGoNowhere) {
  AutogradMessageId other = message();
  ++other.number;
  forge(1, {at::ones({3}, at::kDouble)}, other);
  expect_unharmed();
}

TEST_P(ForgedGradients, DA9_OfALaterPassDoNotCount) {
  forge(1, {at::ones({3}, at::kDouble)}, message(), 7);
  expect_unharmed();
}

TEST_P(ForgedGradients, DA6_ASecondOneDoesNotCount) {
  forge(1, {at::ones({3}, at::kDouble)}, message());
  ASSERT_TRUE(pass_.ready());
  std::move(pass_).get();
  EXPECT_EQ(values(context_.gradients().of(x_)), (std::vector<double>{1, 1, 1})) << "who owes it may say anything";
  forge(1, {at::ones({3}, at::kDouble)}, message());
  EXPECT_EQ(values(context_.gradients().of(x_)), (std::vector<double>{1, 1, 1}));
}

// ---- gradients of another device

/// Returns a view of x whose gradient is on the meta device, which has no memory.
at::Tensor lose_gradient(const at::Tensor& x) {
  at::Tensor y = x.view(x.sizes());
  y.register_hook(
      [](const at::Tensor& gradient) { return at::zeros(gradient.sizes(), gradient.options().device(at::kMeta)); });
  return y;
}

Registry make_device_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&lose_gradient>("lose_gradient");
  return registry;
}

class Devices : public AutogradCluster {
 protected:
  Devices() : AutogradCluster({"worker0", "worker1", "worker2"}, &make_device_registry) {}
};
INSTANTIATE_TEST_SUITE_P(Seeds, Devices, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(Devices, AGradientThatLeftItsTensorsDeviceFailsThePass) {
  const at::Tensor x = leaf({1, 2});
  const Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&lose_gradient>("worker1", x);
  const Result<void> done = context.try_backward({y.sum()});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::backward_failed) << done.error().message();
  EXPECT_THAT(done.error().message(), HasSubstr("MetaDoubleType"));
  EXPECT_TRUE(context.gradients().empty());
}

// ---- backward from inside a node

/// What the hooks of a test do, and the outcome of that.
struct Inside {
  std::function<Result<void>()> run;
  std::optional<Result<void>> outcome;
};
Inside* inside = nullptr;  // of the test that runs

at::Tensor run_inside(const at::Tensor& x) {
  at::Tensor y = x * x;
  y.register_hook([](const at::Tensor&) { inside->outcome = inside->run(); });
  return y * 1;
}
/// As run_inside; the hook runs a backward pass through the caller's context.
at::Tensor backward_inside(Worker& worker, const at::Tensor& x) {
  inside->run = [view = Context::current(worker)] { return view.try_backward({leaf({1}).sum()}); };
  return run_inside(x);
}

Registry make_inside_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&backward_inside>("backward_inside");
  return registry;
}

class Reentrance : public AutogradCluster {
 protected:
  Reentrance() : AutogradCluster({"worker0", "worker1", "worker2"}, &make_inside_registry) { inside = &inside_; }
  ~Reentrance() override { inside = nullptr; }

  void expect(Errc code) {
    ASSERT_TRUE(inside_.outcome);
    ASSERT_FALSE(*inside_.outcome);
    EXPECT_EQ(inside_.outcome->error().code(), code) << inside_.outcome->error().message();
    EXPECT_EQ(values(context_.gradients().of(x_)), (std::vector<double>{2, 4}));
  }

  Inside inside_;
  const at::Tensor x_ = leaf({1, 2});
  Context context_{(*this)[0]};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Reentrance, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(Reentrance, DA14_BackwardFromANodeOfTheInitiatorIsRefused) {
  inside_.run = [this] { return context_.try_backward({leaf({1}).sum()}); };
  const at::Tensor y = run_inside(x_);
  context_.backward({(*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{}, y).sqrt().sum()});
  expect(Errc::reentrant_pass);
}

TEST_P(Reentrance, DA14_BackwardFromANodeOfAParticipantIsRefused) {
  context_.backward({(*this)[0].rpc_sync<&backward_inside>("worker1", x_).sum()});
  expect(Errc::reentrant_pass);
}

TEST_P(Reentrance, DA1_BackwardByAWorkerThatANodeCallsIsRefused) {
  inside_.run = context_.bind([this]() -> Result<void> {
    const std::string said = (*this)[0].rpc_sync<&backward_there>("worker1", leaf({1}));
    if (said.empty()) return {};
    return Error(said.starts_with("pass_busy") ? Errc::pass_busy : Errc::remote_exception, said);
  });
  context_.backward({run_inside((*this)[0].rpc_sync<&add_tensors>("worker2", x_, at::zeros({2}, at::kDouble))).sum()});
  expect(Errc::pass_busy);
}

TEST_P(Reentrance, BackwardOfAnotherContextInsideANodeIsAllowed) {
  const at::Tensor z = leaf({5});
  std::vector<double> gradient;
  inside_.run = [&]() -> Result<void> {
    Ambient own;
    const AmbientSwap swap(&own);
    const c10::AutoGradMode with_graph(true);
    const Context other((*this)[0]);
    const auto done = other.try_backward({(*this)[0].rpc_sync<&square>("worker1", z)});
    gradient = values(other.gradients().of(z));
    return done;
  };
  context_.backward({run_inside((*this)[0].rpc_sync<&add_tensors>("worker2", x_, at::zeros({2}, at::kDouble))).sum()});
  ASSERT_TRUE(inside_.outcome);
  EXPECT_TRUE(*inside_.outcome);
  EXPECT_EQ(gradient, (std::vector<double>{10}));
  EXPECT_EQ(values(context_.gradients().of(x_)), (std::vector<double>{2, 4}));
}

}  // namespace
}  // namespace caftan::test::autograd_hostile_test
