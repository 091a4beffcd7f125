// Backward passes over several workers: topologies, modes, repeated and concurrent passes.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <stdexcept>

#include "autograd_roles.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test::autograd_backward_test {
namespace {

using autograd::Context;
using autograd::Mode;

class Backward : public AutogradCluster {
 protected:
  using Path = std::vector<std::string>;
  /// Gradient of the sum of relay over `path` at [1, 2, 3].
  std::vector<double> relayed(const Path& path, Mode mode) {
    const at::Tensor x = leaf({1, 2, 3});
    Context context((*this)[0]);
    const at::Tensor y = (*this)[0].rpc_sync<&relay>(path[0], Path(path.begin() + 1, path.end()), x);
    context.backward({y.sum()}, {.mode = mode});
    return values(context.gradients().of(x));
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Backward, ::testing::Range<std::uint64_t>(1, 21));

TEST_P(Backward, OneHop) {
  const at::Tensor x = leaf({1, 2, 3});
  {
    Context context((*this)[0]);
    const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
    EXPECT_TRUE(y.requires_grad());
    context.backward({y.sum()});
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6}));
    EXPECT_FALSE(x.grad().defined());
    EXPECT_EQ(context.gradients().entries().size(), 1U);
  }
  expect_no_contexts();
}

TEST_P(Backward, OneHopFast) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  context.backward({y.sum()}, {.mode = Mode::fast});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6}));
}

TEST_P(Backward, AChainOfCallsAndBack) {
  for (const Mode mode : {Mode::smart, Mode::fast}) {
    EXPECT_EQ(relayed({"worker1", "worker2"}, mode), (std::vector<double>{6, 12, 18}));
    EXPECT_EQ(relayed({"worker1", "worker2", "worker1", "worker2"}, mode), (std::vector<double>{54, 108, 162}));
  }
}

TEST_P(Backward, ComesBackToWhereItStarted) {
  for (const Mode mode : {Mode::smart, Mode::fast}) {
    EXPECT_EQ(relayed({"worker1", "worker0"}, mode), (std::vector<double>{6, 12, 18}));
    EXPECT_EQ(relayed({"worker1", "worker0", "worker2", "worker0"}, mode), (std::vector<double>{54, 108, 162}));
  }
}

TEST_P(Backward, ACallToItself) {
  for (const Mode mode : {Mode::smart, Mode::fast}) {
    EXPECT_EQ(relayed({"worker0"}, mode), (std::vector<double>{2, 4, 6}));
    EXPECT_EQ(relayed({"worker0", "worker0"}, mode), (std::vector<double>{6, 12, 18}));
  }
}

TEST_P(Backward, Row18_01_DA6_AnUnusedResultIsLeftAlone) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor used = (*this)[0].rpc_sync<&square>("worker1", x);
  const at::Tensor unused = (*this)[0].rpc_sync<&square>("worker2", x);
  const at::Tensor far = (*this)[0].rpc_sync<&with_unused>("worker2", "worker1", x);
  const at::Tensor nothing = (*this)[0].rpc_sync<&detached>("worker1", x);
  EXPECT_FALSE(nothing.requires_grad());
  context.backward({used.sum() + far.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{7, 9}));
}

TEST_P(Backward, Row18_01_FastNamesAnUnusedBranch) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor used = (*this)[0].rpc_sync<&square>("worker1", x);
  const at::Tensor unused = (*this)[0].rpc_sync<&square>("worker2", x);
  const auto done = context.try_backward({used.sum()}, {.retain_graph = true, .mode = Mode::fast});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::unused_branch);
  EXPECT_TRUE(context.gradients().empty());
  context.backward({used.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4}));
}

TEST_P(Backward, FansOutAndAddsUp) {
  const at::Tensor x = leaf({1, 2});
  const at::Tensor z = leaf({3, 4});
  Context context((*this)[0]);
  auto a = (*this)[0].rpc_async<&square>("worker1", x);
  auto b = (*this)[0].rpc_async<&square>("worker2", x);
  auto c = (*this)[0].rpc_async<&add_tensors>("worker2", x, z);
  context.backward({(a.get() + b.get() + c.get()).sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{5, 9}));
  EXPECT_EQ(values(context.gradients().of(z)), (std::vector<double>{1, 1}));
}

TEST_P(Backward, ThroughACreationAndItsFetch) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  RRef<at::Tensor> y = (*this)[0].remote<&square>("worker1", x);
  context.backward({y.to_here().sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6}));
}

TEST_P(Backward, ThroughAMethodToAWeight) {
  RRef<Scale> scale = (*this)[0].remote<Scale>("worker1", 4.0);
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor y = scale.rpc_sync<&Scale::forward>(x);
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{4, 4}));
  // The message with the pass's outcome may reach worker1 late: the frame of this call carries the outcome, too, so
  // `gradient` finds the merged gradients.
  EXPECT_EQ(scale.rpc_sync<&Scale::gradient>(), (std::vector<double>{3}));
}

TEST_P(Backward, ThroughAnOperator) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_op("worker1", "aten::mul.Tensor", x, x);
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6}));
}

TEST_P(Backward, ThroughAnAsynchronousFunction) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square_later>("worker1", "worker2", x);
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6}));
}

TEST_P(Backward, SeveralResultsOfOneMessage) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  const std::vector<at::Tensor> parts = (*this)[0].rpc_sync<&split3>("worker1", x);
  context.backward({parts[0] + parts[2]});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 0, 4}));
}

TEST_P(Backward, GivenGradientsAndSeveralRoots) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  const at::Tensor z = (*this)[0].rpc_sync<&square>("worker2", x);
  context.backward({y, z.sum()}, {.gradients = {at::tensor({10.0, 100.0}, at::kDouble), at::Tensor()}});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{22, 404}));
}

TEST_P(Backward, DA8_RetainedPassesAddUp) {
  RRef<Scale> scale = (*this)[0].remote<Scale>("worker1", 4.0);
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor y = scale.rpc_sync<&Scale::forward>(x).sum();
  context.backward({y}, {.retain_graph = true});
  const autograd::Gradients before = context.gradients();
  context.backward({y}, {.retain_graph = true, .mode = Mode::fast});
  context.backward({y});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{12, 12}));
  EXPECT_EQ(values(before.of(x)), (std::vector<double>{4, 4}));
  EXPECT_EQ(scale.rpc_sync<&Scale::gradient>(), (std::vector<double>{9}));
}

TEST_P(Backward, DA8_WhatAFailedPassHasStagedElsewhereIsNotMerged) {
  RRef<Scale> scale = (*this)[0].remote<Scale>("worker1", 4.0);
  const at::Tensor x = leaf({1, 2});
  // The hook of x runs last in the pass: worker1 has all its gradients by then.
  x.register_hook([](const at::Tensor&) { throw std::runtime_error("no gradient for x"); });
  const Context context((*this)[0]);
  const auto done = context.try_backward({scale.rpc_sync<&Scale::forward>(x).sum()});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::backward_failed) << done.error().message();
  // worker1 may read this call before or after the end of the pass: it has no gradient in both cases.
  EXPECT_TRUE(scale.rpc_sync<&Scale::gradient>().empty());
}

/// Returns a view that repeats one number 2^18 times: x is small, but the gradient of the view has memory for each.
at::Tensor widen(const at::Tensor& x) { return x.expand({1 << 18}); }

TEST_P(Backward, AGradientThatIsLargerThanAMessageMayBeFailsThePass) {
  const auto registry = [] {
    Registry made = make_autograd_registry();
    made.add<&widen>("widen");
    return made;
  };
  testing::Cluster narrow(GetParam(), {"worker0", "worker1"}, registry,
                          [](WorkerOptions& options) { options.limits.tensors = 1 << 20; });
  const at::Tensor x = leaf({3});
  const Context context(narrow[0]);
  const at::Tensor y = narrow[0].rpc_sync<&widen>("worker1", x);
  const auto done = context.try_backward({(y * y).sum()});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::limit_exceeded) << done.error().message();
  EXPECT_THAT(done.error().text(), ::testing::HasSubstr("the gradients of message"));
  EXPECT_TRUE(context.gradients().empty());
  context.backward({narrow[0].rpc_sync<&square>("worker1", x)});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{6}));
}

TEST_P(Backward, ContextsAtTheSameTimeDoNotMix) {
  RRef<Scale> scale = (*this)[0].remote<Scale>("worker1", 4.0);
  const at::Tensor x = leaf({1});
  std::vector<Context> contexts;
  std::vector<Future<void>> passes;
  for (int i = 1; i <= 3; ++i) {
    Ambient own;  // each pass is started by code of its own, as by handlers of a role
    const AmbientSwap swap(&own);
    contexts.push_back(Context((*this)[0]));
    const at::Tensor y = scale.rpc_sync<&Scale::forward>(x * i).sum();
    passes.push_back(contexts.back().backward_async({y}));
  }
  for (int i = 1; i <= 3; ++i) {
    std::move(passes[i - 1]).get();
    EXPECT_EQ(values(contexts[i - 1].gradients().of(x)), (std::vector<double>{4.0 * i}));
    auto gradient = contexts[i - 1].bind([&] { return scale.rpc_sync<&Scale::gradient>(); });
    EXPECT_EQ(gradient(), (std::vector<double>{1.0 * i}));
  }
  contexts.clear();
  expect_no_contexts();
}

TEST_P(Backward, DA18_UnderNoGradNothingIsRecorded) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  {
    const at::NoGradGuard guard;
    EXPECT_FALSE((*this)[0].rpc_sync<&square>("worker1", x).requires_grad());
  }
  EXPECT_EQ((*this)[0].autograd_contexts().at(0).sent, 0U);
  EXPECT_EQ((*this)[1].autograd_contexts().at(0).received, 0U);
}

TEST_P(Backward, StartedByACalledFunction) {
  // The initiator is not the home.
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  EXPECT_EQ((*this)[0].rpc_sync<&backward_there>("worker2", y), "");
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6}));
}

}  // namespace
}  // namespace caftan::test::autograd_backward_test
