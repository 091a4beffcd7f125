// Rows of PyTorch's own suite (groups 15 to 19), by number: what its tests of distributed autograd check.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function.h>

#include <set>

#include "autograd_roles.hpp"

namespace caftan::test {
namespace {

using autograd::Context;
using autograd::ContextInfo;

/// Throws in backward while the test's switch is on.
struct FailingBackward : torch::autograd::Function<FailingBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const bool* fails) {
    context->saved_data["fails"] = reinterpret_cast<std::int64_t>(fails);
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (*reinterpret_cast<const bool*>(context->saved_data["fails"].toInt())) {
      throw std::runtime_error("simulated failure");
    }
    return {gradients[0] * 2, at::Tensor()};
  }
};

/// One per worker of a test; the methods run there.
class Lab {
 public:
  explicit Lab(double seed) : own_(leaf({seed, seed, seed})) {}
  at::Tensor add_own(const at::Tensor& x) const { return x + own_; }
  at::Tensor only_own(const at::Tensor&) const { return own_.sum(); }
  at::Tensor mixed(const at::Tensor& a, const at::Tensor& b) const { return a.requires_grad() ? a * 3 + b : a - b; }
  at::Tensor failing(const at::Tensor& x) const { return FailingBackward::apply(x, &fails_); }
  void set_failing(bool on) { fails_ = on; }
  at::Tensor looked_up(const at::Tensor& indices) const {
    return at::embedding(table_, indices, -1, false, /*sparse=*/true);
  }
  std::vector<double> own_gradient(Worker& worker) const { return gradient(worker, own_); }
  std::vector<double> table_gradient(Worker& worker) const { return gradient(worker, table_); }

 private:
  static std::vector<double> gradient(Worker& worker, const at::Tensor& of) {
    const at::Tensor g = Context::current(worker).gradients().of(of);
    return values(g.defined() && g.is_sparse() ? g.to_dense() : g);
  }

  at::Tensor own_;
  at::Tensor table_ = at::ones({4, 2}, at::kDouble).requires_grad_();
  bool fails_ = false;
};

at::Tensor ask_lab(const RRef<Lab>& lab, const at::Tensor& x) { return lab.rpc_sync<&Lab::add_own>(x); }
at::Tensor sum_of(const std::vector<at::Tensor>& all) {
  at::Tensor sum = all.at(0);
  for (std::size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
  return sum;
}

Registry make_rows_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&ask_lab>("ask_lab");
  registry.add<&sum_of>("sum_of");
  registry.add<Lab>("Lab")
      .constructor<double>()
      .method<&Lab::add_own>("add_own")
      .method<&Lab::only_own>("only_own")
      .method<&Lab::mixed>("mixed")
      .method<&Lab::failing>("failing")
      .method<&Lab::set_failing>("set_failing")
      .method<&Lab::looked_up>("looked_up")
      .method<&Lab::own_gradient>("own_gradient")
      .method<&Lab::table_gradient>("table_gradient");
  return registry;
}

class Rows : public AutogradCluster {
 protected:
  Rows() : AutogradCluster({"worker0", "worker1", "worker2", "worker3"}, &make_rows_registry) {}
  ContextInfo info(std::size_t worker) {
    const auto all = (*this)[worker].autograd_contexts();
    return all.empty() ? ContextInfo() : all[0];
  }
  static at::Tensor sparse(std::vector<double> numbers) {
    const at::Tensor at = at::tensor({0, 2}, at::kLong).view({1, 2});
    return at::sparse_coo_tensor(at, at::tensor(numbers, at::kDouble), {3}).requires_grad_();
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Rows, testing::Range<std::uint64_t>(1, 4));

TEST_P(Rows, Row15_01_AContextIsCurrentInsideAndUnknownAfterwards) {
  std::set<ContextId> ids;
  for (int i = 0; i < 200; ++i) {
    Context context((*this)[0]);
    EXPECT_EQ(Context::current((*this)[0]).id(), context.id());
    EXPECT_EQ(context.id().worker, (*this)[0].id());
    ids.insert(context.id());
  }
  EXPECT_EQ(ids.size(), 200U);
  EXPECT_FALSE(Context::try_current((*this)[0]));
  expect_no_contexts(4);
}

TEST_P(Rows, Row15_03_TheGraphOfAnOperator) {
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_op("worker1", "aten::add.Tensor", leaf({1}), leaf({2}));
  ASSERT_TRUE(y.grad_fn());
  EXPECT_NE(y.grad_fn()->name().find("Recv"), std::string::npos);
  EXPECT_EQ(info(0).sent, 1U);
  EXPECT_EQ(info(0).received, 1U);
  EXPECT_EQ(info(1).sent, 1U);
  EXPECT_EQ(info(1).received, 1U);
}

TEST_P(Rows, Row15_05_TheGraphOfAFunctionWithSparseTensors) {
  Context context((*this)[0]);
  const at::Tensor x = sparse({1, 2});
  const at::Tensor y = (*this)[0].rpc_sync<&add_tensors>("worker1", x, sparse({3, 4}));
  EXPECT_TRUE(y.is_sparse());
  EXPECT_TRUE(y.grad_fn());
  EXPECT_EQ(info(1).received, 1U);
}

TEST_P(Rows, Row15_06_TheGraphOfACreationAndItsFetch) {
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].remote<&add_tensors>("worker1", leaf({1}), leaf({2})).to_here();
  EXPECT_TRUE(y.grad_fn());
  EXPECT_EQ(info(0).sent, 1U);
  EXPECT_EQ(info(0).received, 1U);
  EXPECT_EQ(info(1).sent, 1U);
}

TEST_P(Rows, Row15_07_TheGraphOfNestedCalls) {
  Context context((*this)[0]);
  (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, leaf({1}));
  EXPECT_EQ(info(1).id, context.id());
  EXPECT_EQ(info(1).sent, 2U);
  EXPECT_EQ(info(1).received, 2U);
  EXPECT_EQ(info(2).sent, 1U);
  EXPECT_EQ(info(2).received, 1U);
}

TEST_P(Rows, Row15_10_TheGraphOfACallThatComesBack) {
  Context context((*this)[0]);
  (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker0"}, leaf({1}));
  EXPECT_EQ(info(0).sent, 2U);
  EXPECT_EQ(info(0).received, 2U);
}

TEST_P(Rows, Row15_11_WithoutTensorsThatNeedGradientsThereIsNoGraph) {
  Context context((*this)[0]);
  (*this)[0].rpc_sync<&square>("worker1", at::ones({2}, at::kDouble));
  (*this)[0].rpc_op("worker2", "aten::neg", at::ones({2}, at::kDouble));
  EXPECT_EQ(info(0).sent + info(0).received, 0U);
  EXPECT_EQ(info(1).id, context.id());
  EXPECT_TRUE((*this)[2].autograd_contexts().empty());
}

TEST_P(Rows, Row15_12_ManyTensorsOfWhichEverySecondNeedsGradients) {
  Context context((*this)[0]);
  std::vector<at::Tensor> all;
  for (int i = 0; i < 10; ++i) all.push_back(i % 2 == 0 ? leaf({1.0 * i}) : at::tensor({1.0 * i}, at::kDouble));
  const at::Tensor sum = (*this)[0].rpc_sync<&sum_of>("worker1", all);
  EXPECT_EQ(values(sum), (std::vector<double>{45}));
  context.backward({sum});
  EXPECT_EQ(context.gradients().entries().size(), 5U);
  EXPECT_EQ(info(0).workers, (std::vector<std::string>{"worker1"}));
}

TEST_P(Rows, Row15_16_EveryWorkerCalledIsKnown) {
  Context context((*this)[0]);
  (*this)[0].rpc_sync<&square>("worker1", leaf({1}));
  (*this)[0].rpc_sync<&square>("worker2", at::ones({1}));
  (*this)[0].rpc_sync<&square>("worker2", at::ones({1}));
  EXPECT_EQ(info(0).workers, (std::vector<std::string>{"worker1", "worker2"}));
}

TEST_P(Rows, Row15_19_AReleaseReachesWorkersThatTheCreatorNeverCalled) {
  {
    Context context((*this)[0]);
    (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2", "worker3"}, leaf({1}));
    settle();
    EXPECT_EQ((*this)[3].autograd_contexts().size(), 1U);
  }
  expect_no_contexts(4);
}

TEST_P(Rows, Row15_20_AnErrorInAContextLeavesItUsable) {
  Context context((*this)[0]);
  const auto failed = (*this)[0].try_rpc_sync<&add_tensors>("worker1", leaf({1, 2}), leaf({1, 2, 3}));
  EXPECT_EQ(failed.error().code(), Errc::remote_exception);
  const at::Tensor x = leaf({3});
  context.backward({(*this)[0].rpc_sync<&square>("worker1", x)});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{6}));
}

TEST_P(Rows, Row15_22_AValueMadeOutsideIsRecordedWhereItIsFetched) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  RRef<at::Tensor> made = lab.remote<&Lab::only_own>(leaf({1}));
  Context context((*this)[0]);
  context.backward({made.to_here()});
  EXPECT_EQ(lab.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{1, 1, 1}));
}

TEST_P(Rows, Row16_02_SparseTensorsHaveSparseGradients) {
  Context context((*this)[0]);
  const at::Tensor x = sparse({1, 2});
  const at::Tensor y = (*this)[0].rpc_sync<&add_tensors>("worker1", x, sparse({3, 4}));
  context.backward({y.to_dense().sum()});
  const at::Tensor g = context.gradients().of(x);
  ASSERT_TRUE(g.defined());
  EXPECT_EQ(values(g.is_sparse() ? g.to_dense() : g).size(), 3U);
}

TEST_P(Rows, Row16_05_DotGradIsLeftAlone) {
  const at::Tensor x = leaf({3});
  Context context((*this)[0]);
  context.backward({(*this)[0].rpc_sync<&square>("worker1", x)});
  EXPECT_FALSE(x.grad().defined());
  (x * x).sum().backward();
  context.backward({(*this)[0].rpc_sync<&square>("worker1", x)});
  EXPECT_EQ(values(x.grad()), (std::vector<double>{6}));
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{12}));
}

TEST_P(Rows, Row16_06_GradientsAreWhereTheLeavesAre) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  context.backward({lab.rpc_sync<&Lab::add_own>(x).sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(context.gradients().entries().size(), 1U);
  EXPECT_EQ(lab.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{1, 1, 1}));
}

TEST_P(Rows, Row16_08_AReferenceIsUsedByAThirdWorker) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker2", 1.0);
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  context.backward({(*this)[0].rpc_sync<&ask_lab>("worker1", lab, x).sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(lab.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{1, 1, 1}));
}

TEST_P(Rows, Row16_10_EveryWorkerServesTheOthers) {
  for (const std::size_t trainer : {0U, 2U, 3U}) {
    Context context((*this)[trainer]);
    RRef<Lab> own = (*this)[trainer].remote<Lab>("worker1", 1.0);
    context.backward({own.rpc_sync<&Lab::only_own>(leaf({1})) * (1.0 + trainer)});
    const double g = 1.0 + trainer;
    EXPECT_EQ(own.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{g, g, g}));
  }
}

TEST_P(Rows, Row16_16_SeveralRoots) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  std::vector<at::Tensor> roots;
  for (const char* worker : {"worker1", "worker2", "worker3", "worker0"}) {
    roots.push_back((*this)[0].rpc_sync<&square>(worker, x).sum());
  }
  context.backward(roots);
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{8, 16}));
}

TEST_P(Rows, Row16_24_TheCalleeSeesWhichArgumentsNeedGradients) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  const at::Tensor x = leaf({2});
  const at::Tensor plain = at::tensor({5.0}, at::kDouble);
  Context context((*this)[0]);
  EXPECT_EQ(values(lab.rpc_sync<&Lab::mixed>(plain, x)), (std::vector<double>{3}));
  const at::Tensor y = lab.rpc_sync<&Lab::mixed>(x, plain);
  EXPECT_EQ(values(y), (std::vector<double>{11}));
  context.backward({y});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{3}));
  EXPECT_EQ(context.gradients().entries().size(), 1U);
}

TEST_P(Rows, Row16_25_OnlyTheResultNeedsGradients) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  Context context((*this)[0]);
  context.backward({lab.rpc_sync<&Lab::only_own>(at::ones({1}))});
  EXPECT_TRUE(context.gradients().empty());
  EXPECT_EQ(lab.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{1, 1, 1}));
}

TEST_P(Rows, Row16_27_SparseWeightGradientsAddUpAtTheOwner) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  const at::Tensor indices = at::tensor({1, 1, 3}, at::kLong);
  Context context((*this)[0]);
  for (int pass = 0; pass < 2; ++pass) context.backward({lab.rpc_sync<&Lab::looked_up>(indices).sum()});
  EXPECT_EQ(lab.rpc_sync<&Lab::table_gradient>(), (std::vector<double>{0, 0, 4, 4, 0, 0, 2, 2}));
}

TEST_P(Rows, Row17_03_ManyRetainedPasses) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor loss = (*this)[0].rpc_sync<&square>("worker1", x).sum();
  for (int i = 0; i < 1000; ++i) context.backward({loss}, {.retain_graph = true});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2000, 4000}));
}

TEST_P(Rows, Row17_05_FailedPassesLeaveNothingAndTheGraphWorksAfterwards) {
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

TEST_P(Rows, Row18_02_AnErrorHopsAwayNamesItsWorkerAndText) {
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

TEST_P(Rows, Row18_03_TheLossOfTheLastHopIsAnError) {
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, leaf({1}));
  net_.isolate("worker2");
  EXPECT_EQ(context.try_backward({y.sum()}).error().code(), Errc::peer_down);
}

TEST_P(Rows, Row18_06_AReleaseDuringAPassIsNoCrash) {
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

TEST_P(Rows, Row19_01_HooksOfTensorsAreApplied) {
  const at::Tensor x = leaf({1, 2});
  x.register_hook([](const at::Tensor& g) { return g * 2; });
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  y.register_hook([](const at::Tensor& g) { return g * 10; });
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{40, 80}));
}

}  // namespace
}  // namespace caftan::test
