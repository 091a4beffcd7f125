// A backward pass through the result of an unrecorded call fails with an error that says so (DA-21); tensors over one
// storage at a callee share a version counter (DA-20).
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include "autograd_roles.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test::autograd_unrecorded_test {
namespace {

using autograd::Context;
using autograd::Mode;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A weighted sum whose input is changed in place afterwards, through another tensor over its storage.
at::Tensor change_an_alias(at::Tensor x, const at::Tensor& view, const at::Tensor& w) {
  at::Tensor y = (w * view).sum();
  x.add_(100);
  return y;
}
/// Calls as a thread that knows no context does, though the function runs in one. (The stepped executor does not see a
/// thread of the function's own: its clock could pass the call's deadline before that thread has called.)
at::Tensor square_outside_the_context(Worker& worker, const std::string& where, const at::Tensor& x) {
  Ambient ambient = *Ambient::current();
  ambient.autograd_context.reset();
  const AmbientSwap swap(&ambient);
  return worker.rpc_sync<&square>(where, x);
}

/// Returns whether the tensor arrived as a leaf, and whether it needs a gradient.
std::vector<int> how_it_arrived(const at::Tensor& x) { return {x.is_leaf(), x.requires_grad()}; }
/// A module whose parameter is an argument of its constructor.
class Given {
 public:
  explicit Given(at::Tensor weight) : weight_(std::move(weight)) {}
  at::Tensor forward(const at::Tensor& x) const { return (weight_ * x).sum(); }
  std::vector<double> gradient(Worker& worker) const {
    return values(Context::current(worker).gradients().of(weight_));
  }

 private:
  at::Tensor weight_;
};

Registry make_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&change_an_alias>("change_an_alias");
  registry.add<&square_outside_the_context>("square_outside_the_context");
  registry.add<&how_it_arrived>("how_it_arrived");
  registry.add<Given>("Given").constructor<at::Tensor>().method<&Given::forward>("forward").method<&Given::gradient>(
      "gradient");
  return registry;
}

class Unrecorded : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void expect_named(const Result<void>& done, const std::string& peer) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Errc::backward_failed);
    EXPECT_EQ(innermost(done.error()).code(), Errc::unknown_context);
    EXPECT_THAT(done.error().message(),
                AllOf(HasSubstr("a call to " + peer), HasSubstr("Open autograd::Context"), HasSubstr("context.bind")));
  }
  static Error innermost(const Error& error) { return error.cause() ? innermost(*error.cause()) : error; }

  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_registry};
  Worker& here_ = cluster_[0];
};
INSTANTIATE_TEST_SUITE_P(Seeds, Unrecorded, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(Unrecorded, U1_DA21_BackwardThroughAResultFromOutsideTheContextNamesTheWorkerAndTheWayOut) {
  const RRef<Scale> part = here_.remote<Scale>("worker1", 3.0);
  const at::Tensor y = part.rpc_sync<&Scale::forward>(leaf({2}));
  const Context context(here_);
  for (const Mode mode : {Mode::smart, Mode::fast}) {
    expect_named(context.try_backward({y.sum()}, {.mode = mode}), "worker1");
  }
  EXPECT_TRUE(context.gradients().empty());
}

TEST_P(Unrecorded, U1_DA21_AlsoWhereAnotherPartOfTheLossIsRecorded) {
  const RRef<Scale> forgotten = here_.remote<Scale>("worker1", 3.0);
  const RRef<Scale> kept = here_.remote<Scale>("worker2", 4.0);
  const at::Tensor x = leaf({2});
  const at::Tensor y = forgotten.rpc_sync<&Scale::forward>(x);
  const Context context(here_);
  const at::Tensor loss = (y * kept.rpc_sync<&Scale::forward>(x)).sum();
  expect_named(context.try_backward({loss}), "worker1");
  EXPECT_TRUE(kept.rpc_sync<&Scale::gradient>().empty()) << "half the model would be stepped";
  EXPECT_TRUE(context.gradients().empty());
}

TEST_P(Unrecorded, U1_DA21_TorchsOwnBackwardSaysItToo) {
  const at::Tensor y = here_.rpc_sync<&square>("worker1", leaf({2}));
  try {
    y.sum().backward();
    FAIL() << "a gradient was lost";
  } catch (const RpcException& e) {
    EXPECT_THAT(e.error().text(), HasSubstr("a call to worker1"));
  }
}

TEST_P(Unrecorded, U1_DA21_ThatAlsoHoldsInTheMiddleOfAPass) {
  const at::Tensor x = leaf({2});
  const Context context(here_);
  const at::Tensor y = here_.rpc_sync<&square_outside_the_context>("worker1", "worker2", x);
  expect_named(context.try_backward({y.sum()}), "worker2");
  EXPECT_TRUE(context.gradients().empty());
}

TEST_P(Unrecorded, U1_DA21_WhereNoGradientFlowsItIsAnOrdinaryTensor) {
  const at::Tensor x = leaf({2});
  const at::Tensor y = here_.rpc_sync<&square>("worker1", x);
  EXPECT_EQ(values(y), (std::vector<double>{4}));
  {
    const Context context(here_);
    context.backward({(x * y.detach()).sum()});
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{4}));
  }
  const at::Tensor mine = y.detach().requires_grad_();
  (mine * 5).sum().backward();
  EXPECT_EQ(values(mine.grad()), (std::vector<double>{5}));
  const at::NoGradGuard evaluation;
  EXPECT_FALSE(here_.rpc_sync<&square>("worker1", x).requires_grad());
}

TEST_P(Unrecorded, U1_AnArgumentFromOutsideAContextIsALeafThatCanBeTrainedThere) {
  const at::Tensor weight = leaf({3, 4});
  EXPECT_EQ(here_.rpc_sync<&how_it_arrived>("worker1", weight * 2), (std::vector<int>{1, 1}));
  EXPECT_EQ(here_.rpc_sync<&how_it_arrived>("worker1", weight.detach()), (std::vector<int>{1, 0}));
  {
    const at::NoGradGuard no_grad;
    EXPECT_EQ(here_.rpc_sync<&how_it_arrived>("worker1", weight), (std::vector<int>{1, 1}));
  }
  const RRef<Given> module = here_.remote<Given>("worker1", weight);
  ASSERT_TRUE(module.created().result());
  const Context context(here_);
  context.backward({module.rpc_sync<&Given::forward>(leaf({5, 6}))});
  EXPECT_EQ(module.rpc_sync<&Given::gradient>(), (std::vector<double>{5, 6}));
  EXPECT_FALSE(context.gradients().of(weight).defined()) << "it is another parameter from there on";
}

TEST_P(Unrecorded, A3_DA20_AChangeThroughAnAliasIsFoundAtTheCallee) {
  const Context context(here_);
  const at::Tensor x = at::ones({2}, at::kDouble);
  const at::Tensor w = leaf({1, 1});
  const at::Tensor y = here_.rpc_sync<&change_an_alias>("worker1", x, x.view({2}), w);
  const auto done = context.try_backward({y});
  ASSERT_FALSE(done) << "the gradient of w would be " << values(context.gradients().of(w))[0] << ", right is 1";
  EXPECT_THAT(done.error().message(), HasSubstr("modified by an inplace operation"));
}

}  // namespace
}  // namespace caftan::test::autograd_unrecorded_test
