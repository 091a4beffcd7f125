// Rows of PyTorch's own suite, groups 17 to 19: repeated passes, errors, hooks and who owns a gradient.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <array>

#include "autograd_rows.hpp"

namespace caftan::test::autograd_pass_rows_test {
namespace {

namespace torch_autograd = torch::autograd;

class PassRows : public RowsCluster {
 protected:
  /// Runs `passes` backward passes from `root` over the workers and as many from `local` here, and expects equal
  /// gradients of `leaves`.
  void expect_sums(const at::Tensor& root, const at::Tensor& local, const std::vector<at::Tensor>& leaves, int passes) {
    const Context& context = *context_;
    for (int i = 0; i < passes; ++i) {
      context.backward({root}, {.retain_graph = true});
      local.backward({}, true);
    }
    for (const at::Tensor& leaf : leaves) {
      EXPECT_TRUE(dense(context.gradients().of(leaf)).equal(dense(leaf.grad())));
    }
  }
  std::optional<Context> context_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, PassRows, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(PassRows, Row17_01_TwoPassesAddUpAsLocalOnesDo) {
  const at::Tensor a = leaf({1, 2});
  const at::Tensor b = leaf({3, 4});
  context_.emplace((*this)[0]);
  const at::Tensor root = (*this)[0].rpc_op("worker1", "aten::mul.Tensor", a, b).sum();
  expect_sums(root, (a * b).sum(), {a, b}, 2);
}

TEST_P(PassRows, Row17_02_TwoPassesOverNestedCalls) {
  const at::Tensor a = leaf({1, 2});
  const at::Tensor b = leaf({3, 4});
  context_.emplace((*this)[0]);
  const at::Tensor root = (*this)[0].rpc_sync<&add_along>("worker1", Path{"worker2", "worker3"}, a, b).sum();
  expect_sums(root, (a + b).sum(), {a, b}, 2);
}

TEST_P(PassRows, Row17_03_ManyRetainedPasses) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor loss = (*this)[0].rpc_sync<&square>("worker1", x).sum();
  for (int i = 0; i < 1000; ++i) context.backward({loss}, {.retain_graph = true});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2000, 4000}));
}

TEST_P(PassRows, Row17_04_ManyRetainedPassesWithSparseTensors) {
  const at::Tensor a = sparse({1, 2});
  const at::Tensor b = sparse({3, 4});
  context_.emplace((*this)[0]);
  const at::Tensor root = (*this)[0].rpc_op("worker1", "aten::mul.Tensor", a, b).sum();
  expect_sums(root, (a * b).sum(), {a, b}, 1000);
}

TEST_P(PassRows, Row17_05_FailedPassesLeaveNothingAndTheGraphWorksAfterwards) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor loss = lab.rpc_sync<&Lab::failing>(x).sum();
  lab.rpc_sync<&Lab::set_failing>(true);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(context.try_backward({loss}, {.retain_graph = true}).error().code(), Errc::backward_failed);
  }
  EXPECT_TRUE(context.gradients().empty());
  lab.rpc_sync<&Lab::set_failing>(false);
  for (int i = 0; i < 49; ++i) context.backward({loss}, {.retain_graph = true});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{98, 98}));
}

TEST_P(PassRows, Row18_02_AnErrorHopsAwayNamesItsWorkerAndText) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker2", 1.0);
  lab.rpc_sync<&Lab::set_failing>(true);
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", lab.rpc_sync<&Lab::failing>(leaf({1})));
  const auto done = context.try_backward({y});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::backward_failed);
  EXPECT_EQ(done.error().worker(), "worker2");
  EXPECT_NE(done.error().text().find("simulated failure"), std::string::npos);
}

TEST_P(PassRows, Row18_03_TheLossOfTheLastHopIsAnError) {
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, leaf({1}));
  net_.kill("worker2");
  EXPECT_EQ(context.try_backward({y.sum()}).error().code(), Errc::peer_down);
}

TEST_P(PassRows, Row18_05_AnErrorOfANestedCalleeReachesTheRoot) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker2", 1.0);
  lab.rpc_sync<&Lab::set_failing>(true);
  const Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&fail_at_lab>("worker1", lab, leaf({1}));
  const auto done = context.try_backward({y});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::backward_failed);
  EXPECT_EQ(done.error().worker(), "worker2");
  EXPECT_NE(done.error().text().find("simulated failure"), std::string::npos);
}

TEST_P(PassRows, Row18_06_AReleaseDuringAPassIsNoCrash) {
  Future<void> pass;
  {
    Context context((*this)[0]);
    at::Tensor y = leaf({1});
    for (int i = 0; i < 100; ++i) y = (*this)[0].rpc_sync<&square>(i % 2 == 0 ? "worker1" : "worker2", y);
    pass = context.backward_async({y});
  }
  (void)std::move(pass).result();
  expect_no_contexts(4);
}

TEST_P(PassRows, Row19_01_HooksOfTensorsAreApplied) {
  const at::Tensor x = leaf({1, 2});
  x.register_hook([](const at::Tensor& g) { return g * 2; });
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  y.register_hook([](const at::Tensor& g) { return g * 10; });
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{40, 80}));
}

struct Counts : torch_autograd::FunctionPostHook {
  Counts(int& sum, int by) : sum_(sum), by_(by) {}
  torch_autograd::variable_list operator()(const torch_autograd::variable_list& outputs,
                                           const torch_autograd::variable_list&) override {
    sum_ += by_;
    return outputs;
  }
  int& sum_;
  const int by_;
};

TEST_P(PassRows, Row19_02_PostHooksOfALeafRun) {
  int sum = 0;
  const at::Tensor x = leaf({1, 2});
  const auto accumulator = torch_autograd::impl::grad_accumulator(x);
  for (const int by : {1, 2, 2}) accumulator->add_post_hook(std::make_unique<Counts>(sum, by));
  const Context context((*this)[0]);
  context.backward({(*this)[0].rpc_sync<&square>("worker1", x).sum()});
  EXPECT_EQ(sum, 5);
  EXPECT_EQ(context.gradients().entries().size(), 1U);
}

/// The gradients that the backward of GivesGradients, a function that adds its inputs, returns.
struct Given {
  std::array<at::Tensor, 2> gradients;
  std::array<const void*, 2> memory{};
};
struct GivesGradients : torch_autograd::Function<GivesGradients> {
  static at::Tensor forward(torch_autograd::AutogradContext* context, const at::Tensor& a, const at::Tensor& b,
                            Given* given) {
    context->saved_data["given"] = reinterpret_cast<std::int64_t>(given);
    return a + b;
  }
  static torch_autograd::variable_list backward(torch_autograd::AutogradContext* context,
                                                torch_autograd::variable_list) {
    Given& given = *reinterpret_cast<Given*>(context->saved_data["given"].toInt());
    return {std::move(given.gradients[0]), std::move(given.gradients[1]), at::Tensor()};
  }
};

class GradientRows : public PassRows {
 protected:
  const void* memory(const at::Tensor& tensor) const {
    return (tensor.is_sparse() ? tensor._values() : tensor).const_data_ptr();
  }
  /// Runs a pass that ends in the leaves a and b, whose gradients are `for_a` and `for_b`. Returns where the memory of
  /// the leaves' gradients in the context is.
  std::array<const void*, 2> run(at::Tensor for_a, at::Tensor for_b) {
    given_.gradients = {std::move(for_a), std::move(for_b)};
    context_.emplace((*this)[0]);
    const at::Tensor sum = GivesGradients::apply(a_, b_, &given_);
    root_ = (*this)[0].rpc_sync<&square>("worker1", sum).sum();
    context_->backward({root_}, {.retain_graph = true});
    return {memory(context_->gradients().of(a_)), memory(context_->gradients().of(b_))};
  }

  const at::Tensor a_ = leaf({1, 2, 3});
  const at::Tensor b_ = leaf({4, 5, 6});
  Given given_;
  at::Tensor root_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, GradientRows, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(GradientRows, Row19_03_OnlyWhatHasNoOtherHolderIsNotCopied) {
  at::Tensor own = at::ones({3}, at::kDouble);
  const void* const stolen = own.const_data_ptr();
  const at::Tensor expanded = at::ones({1}, at::kDouble).expand({3});
  const auto apart = run(std::move(own), expanded);
  EXPECT_EQ(apart[0], stolen);
  EXPECT_NE(apart[1], expanded.const_data_ptr());
  EXPECT_TRUE(context_->gradients().of(b_).is_contiguous());

  context_.reset();
  const at::Tensor shared = at::ones({3}, at::kDouble);
  const auto both = run(shared, shared);
  EXPECT_NE(both[0], shared.const_data_ptr());
  EXPECT_NE(both[1], shared.const_data_ptr());
  EXPECT_NE(both[0], both[1]);
}

TEST_P(GradientRows, Row19_04_OnlySparseValuesWithoutAnotherHolderAreNotCopied) {
  at::Tensor own = sparse({1, 2}).detach();
  const void* const stolen = own._values().const_data_ptr();
  const at::Tensor shared = sparse({3, 4}).detach();
  const auto apart = run(std::move(own), shared);
  EXPECT_EQ(apart[0], stolen);
  EXPECT_NE(apart[1], memory(shared));
  for (int i = 0; i < 10; ++i) {
    given_.gradients = {sparse({1, 2}).detach(), shared};
    context_->backward({root_}, {.retain_graph = true});
  }
  EXPECT_EQ(values(dense(context_->gradients().of(a_))), (std::vector<double>{11, 0, 22}));
  EXPECT_EQ(values(dense(context_->gradients().of(b_))), (std::vector<double>{33, 0, 44}));
  EXPECT_EQ(values(dense(shared)), (std::vector<double>{3, 0, 4}));
}

}  // namespace
}  // namespace caftan::test::autograd_pass_rows_test
