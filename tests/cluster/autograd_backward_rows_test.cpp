// Rows of PyTorch's own suite, group 16: what backward passes over several workers give.
#include <ATen/ops/_sparse_sum.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include "autograd_rows.hpp"

namespace caftan::test::autograd_backward_rows_test {
namespace {

using Tensors = std::vector<at::Tensor>;

class BackwardRows : public RowsCluster {
 protected:
  Worker& here() { return (*this)[0]; }
  /// Gradients of the sum of what `run` returns, at `leaves`: in a context, and locally.
  template <class Run, class Local>
  void expect_same_gradients(const Tensors& leaves, const Run& run, const Local& local) {
    Context context(here());
    context.backward({dense(run()).sum()});
    const autograd::Gradients gradients = context.gradients();
    EXPECT_EQ(gradients.entries().size(), leaves.size());
    dense(local()).sum().backward();
    for (const at::Tensor& leaf : leaves) {
      const at::Tensor ours = gradients.of(leaf);
      ASSERT_TRUE(ours.defined());
      EXPECT_EQ(ours.dtype(), leaf.grad().dtype());
      EXPECT_TRUE(dense(ours).equal(dense(leaf.grad())));
      leaf.mutable_grad() = at::Tensor();
    }
  }
  /// a + b at `where` in the three ways to call.
  void expect_addition(const char* where, const at::Tensor& a, const at::Tensor& b) {
    const auto local = [&] { return a + b; };
    const auto op = [&] { return here().rpc_op(where, "aten::add.Tensor", a, b); };
    const auto remote = [&] { return here().remote_op(where, "aten::add.Tensor", a, b).to_here(); };
    expect_same_gradients({a, b}, local, local);
    expect_same_gradients({a, b}, op, local);
    expect_same_gradients({a, b}, remote, local);
  }
  template <auto F>
  void expect_addition_by_function(const at::Tensor& a, const at::Tensor& b) {
    const auto local = [&] { return a + b; };
    expect_same_gradients(
        {a, b}, [&] { return here().rpc_async<F>("worker1", a, b).get(); }, local);
    expect_same_gradients(
        {a, b}, [&] { return here().remote<F>("worker1", a, b).to_here(); }, local);
  }
  /// A leaf of worker1 is added to `x` there; `add` says how.
  template <class Add>
  void expect_gradients_at_both(const RRef<at::Tensor>& r, const at::Tensor& x, const Add& add) {
    Context context(here());
    context.backward({dense(add(r, x)).sum()});
    EXPECT_EQ(context.gradients().entries().size(), 1U);
    const std::vector<double> own = values(dense(context.gradients().of(x)));
    EXPECT_EQ(own, (std::vector<double>{1, x.is_sparse() ? 0.0 : 1.0, 1}));
    EXPECT_EQ(here().rpc_sync<&gradient_of>("worker1", r), own);
  }
  at::Tensor add_by_owner(const RRef<at::Tensor>& r, const at::Tensor& x) {
    return here().rpc_sync<&add_to_referred>("worker1", r, x);
  }
  at::Tensor add_by_third(const RRef<at::Tensor>& r, const at::Tensor& x) {
    return here().rpc_sync<&add_at_owner>("worker2", r, x);
  }
  static at::Tensor matrix(double first) {
    return (at::eye(3, at::kDouble) * first + at::ones({3, 3}, at::kDouble)).requires_grad_();
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, BackwardRows, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(BackwardRows, Row16_01_AnAdditionInEveryWayToCall) { expect_addition("worker1", leaf({1, 2}), leaf({3, 4})); }

TEST_P(BackwardRows, Row16_02_ASparseAdditionInEveryWayToCall) {
  expect_addition("worker1", sparse({1, 2}), sparse({3, 4}));
}

TEST_P(BackwardRows, Row16_03_AnAdditionAtItself) { expect_addition("worker0", leaf({1, 2}), leaf({3, 4})); }

TEST_P(BackwardRows, Row16_04_ASparseAdditionAtItself) { expect_addition("worker0", sparse({1, 2}), sparse({3, 4})); }

TEST_P(BackwardRows, Row16_05_DotGradIsLeftAlone) {
  const at::Tensor x = leaf({3});
  Context context((*this)[0]);
  context.backward({(*this)[0].rpc_sync<&square>("worker1", x)});
  EXPECT_FALSE(x.grad().defined());
  (x * x).sum().backward();
  context.backward({(*this)[0].rpc_sync<&square>("worker1", x)});
  EXPECT_EQ(values(x.grad()), (std::vector<double>{6}));
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{12}));
}

TEST_P(BackwardRows, Row16_06_GradientsAreWhereTheLeavesAre) {
  expect_gradients_at_both(here().remote<&make_leaf>("worker1", std::vector<double>{1, 2, 3}), leaf({4, 5, 6}),
                           [this](const auto& r, const auto& x) { return add_by_owner(r, x); });
}

TEST_P(BackwardRows, Row16_07_SparseGradientsAreWhereTheLeavesAre) {
  expect_gradients_at_both(here().remote<&make_sparse_leaf>("worker1", std::vector<double>{1, 2}), sparse({4, 5}),
                           [this](const auto& r, const auto& x) { return add_by_owner(r, x); });
}

TEST_P(BackwardRows, Row16_08_AReferenceIsUsedByAThirdWorker) {
  expect_gradients_at_both(here().remote<&make_leaf>("worker1", std::vector<double>{1, 2, 3}), leaf({4, 5, 6}),
                           [this](const auto& r, const auto& x) { return add_by_third(r, x); });
}

TEST_P(BackwardRows, Row16_09_ASparseReferenceIsUsedByAThirdWorker) {
  expect_gradients_at_both(here().remote<&make_sparse_leaf>("worker1", std::vector<double>{1, 2}), sparse({4, 5}),
                           [this](const auto& r, const auto& x) { return add_by_third(r, x); });
}

TEST_P(BackwardRows, Row16_10_EveryWorkerServesTheOthers) {
  for (const std::size_t trainer : {0U, 2U, 3U}) {
    Context context((*this)[trainer]);
    RRef<Lab> own = (*this)[trainer].remote<Lab>("worker1", 1.0);
    context.backward({own.rpc_sync<&Lab::only_own>(leaf({1})) * (1.0 + trainer)});
    const double g = 1.0 + trainer;
    EXPECT_EQ(own.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{g, g, g}));
  }
}

TEST_P(BackwardRows, Row16_11_EveryWorkerServesTheOthersByScriptFunctions) {
  for (std::size_t server = 0; server < 4; ++server) {
    const std::string name = "worker" + std::to_string(server);
    for (std::size_t trainer = 0; trainer < 4; ++trainer) {
      if (trainer == server) continue;
      Worker& worker = (*this)[trainer];
      Context context(worker);
      const at::Tensor x = leaf({1, 1, 1});
      const double g = 1.0 + trainer;
      context.backward({(worker.rpc_script(name, "rows.add_own", x) * g).sum()});
      EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{g, g, g}));
      EXPECT_EQ(worker.rpc_sync<&only_gradient>(name), (std::vector<double>{g, g, g}));
    }
  }
}

TEST_P(BackwardRows, Row16_12_ManyRoundTrips) {
  const at::Tensor a = matrix(1);
  const at::Tensor b = matrix(2);
  const auto local = [&] {
    const at::Tensor sum = a + b;
    const at::Tensor product = a * sum;
    const at::Tensor one = at::stack({sum, product}, 0);
    const at::Tensor other = at::stack({product, sum}, 0);
    return at::matmul(at::bmm(one, other), other);
  };
  const auto rotating = [&] {
    const at::Tensor sum = here().rpc_op("worker1", "aten::add.Tensor", a, b);
    const at::Tensor product = here().rpc_op("worker2", "aten::mul.Tensor", a, sum);
    const at::Tensor one = here().rpc_op("worker3", "aten::stack", Tensors{sum, product}, 0);
    const at::Tensor other = here().rpc_op("worker0", "aten::stack", Tensors{product, sum}, 0);
    return here().rpc_op("worker2", "aten::matmul", here().rpc_op("worker1", "aten::bmm", one, other), other);
  };
  expect_same_gradients({a, b}, rotating, local);
}

TEST_P(BackwardRows, Row16_13_ManyRoundTripsWithSparseTensors) {
  const at::Tensor a = sparse({1, 2});
  const at::Tensor b = sparse({3, 4});
  const auto local = [&] {
    const at::Tensor sum = a + b;
    const at::Tensor product = a * sum;
    return sum * product;
  };
  const auto rotating = [&] {
    const at::Tensor sum = here().rpc_op("worker1", "aten::add.Tensor", a, b);
    const at::Tensor product = here().rpc_op("worker2", "aten::mul.Tensor", a, sum);
    return here().rpc_op("worker3", "aten::mul.Tensor", sum, product);
  };
  expect_same_gradients({a, b}, rotating, local);
}

TEST_P(BackwardRows, Row16_14_SeveralResultsOfWhichSomeAreUsed) {
  const at::Tensor x = leaf({1, 2, 3, 4, 5});
  const auto combine = [](const Tensors& parts) { return parts.at(0) * parts.at(2) * parts.at(4); };
  expect_same_gradients(
      {x},
      [&] {
        const auto results = here().rpc_op_async("worker1", "aten::split.Tensor", x, 1).get();
        return combine(std::get<Tensors>(results.at(0)));
      },
      [&] { return combine(x.split(1)); });
}

TEST_P(BackwardRows, Row16_15_WithoutAnyCall) {
  const at::Tensor a = leaf({1, 2});
  const at::Tensor b = leaf({3, 4});
  Context context(here());
  context.backward({(a + b).sum()});
  EXPECT_EQ(context.gradients().entries().size(), 2U);
  for (const at::Tensor& x : {a, b}) EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{1, 1}));
}

TEST_P(BackwardRows, Row16_16_SeveralRoots) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  std::vector<at::Tensor> roots;
  for (const char* worker : {"worker1", "worker2", "worker3", "worker0"}) {
    roots.push_back((*this)[0].rpc_sync<&square>(worker, x).sum());
  }
  context.backward(roots);
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{8, 16}));
}

TEST_P(BackwardRows, Row16_17_EachSparseGradientHasItsOwnDtype) {
  const at::Tensor a = sparse({1, 2}, at::kFloat);
  const at::Tensor b = sparse({3, 4});
  const auto local = [&] { return a + b; };
  expect_same_gradients(
      {a, b}, [&] { return here().rpc_op("worker1", "aten::add.Tensor", a, b); }, local);
}

TEST_P(BackwardRows, Row16_18_AFunctionOfOnesOwn) {
  expect_addition_by_function<&add_tensors>(leaf({1, 2}), leaf({3, 4}));
}

TEST_P(BackwardRows, Row16_19_AFunctionOfOnesOwnWithSparseTensors) {
  expect_addition_by_function<&add_tensors>(sparse({1, 2}), sparse({3, 4}));
}

TEST_P(BackwardRows, Row16_20_AScriptFunctionWithSparseTensors) {
  const at::Tensor a = sparse({1, 2});
  const at::Tensor b = sparse({3, 4});
  const auto local = [&] { return a + b; };
  expect_same_gradients(
      {a, b}, [&] { return here().rpc_script("worker0", "rows.add", a, b); }, local);
  expect_same_gradients(
      {a, b}, [&] { return here().rpc_script("worker1", "rows.add", a, b); }, local);
  expect_same_gradients(
      {a, b}, [&] { return std::get<at::Tensor>(here().rpc_script_async("worker1", "rows.add", a, b).get().at(0)); },
      local);
  expect_same_gradients(
      {a, b}, [&] { return here().remote_script("worker1", "rows.add", a, b).to_here(); }, local);
}

TEST_P(BackwardRows, Row16_21_AFunctionOfManyLayers) {
  const at::Tensor a = matrix(1);
  const at::Tensor b = matrix(2);
  expect_same_gradients(
      {a, b}, [&] { return here().remote<&layers>("worker1", a, b).to_here(); }, [&] { return layers(a, b); });
}

TEST_P(BackwardRows, Row16_22_AFunctionWithArithmeticAroundANestedCall) {
  const at::Tensor a = matrix(1);
  const at::Tensor b = matrix(2);
  expect_same_gradients(
      {a, b}, [&] { return here().rpc_sync<&layers_around>("worker1", "worker2", a, b); },
      [&] { return a * 2 + b * layers(a, b); });
}

TEST_P(BackwardRows, Row16_23_SparseArithmeticAroundANestedCall) {
  const at::Tensor a = sparse({1, 2});
  const at::Tensor b = sparse({3, 4});
  expect_same_gradients(
      {a, b}, [&] { return here().rpc_sync<&product_around>("worker1", "worker2", a, b); },
      [&] { return a + (a * b + b); });
}

TEST_P(BackwardRows, Row16_24_TheCalleeSeesWhichArgumentsNeedGradients) {
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

TEST_P(BackwardRows, Row16_25_OnlyTheResultNeedsGradients) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  Context context((*this)[0]);
  context.backward({lab.rpc_sync<&Lab::only_own>(at::ones({1}))});
  EXPECT_TRUE(context.gradients().empty());
  EXPECT_EQ(lab.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{1, 1, 1}));
}

TEST_P(BackwardRows, Row16_26_OnlyTheResultOfACreationNeedsGradients) {
  RRef<Lab> lab = here().remote<Lab>("worker1", 1.0);
  Context context(here());
  context.backward({lab.remote<&Lab::only_own>(at::ones({1})).to_here()});
  EXPECT_TRUE(context.gradients().empty());
  EXPECT_EQ(lab.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{1, 1, 1}));
}

TEST_P(BackwardRows, Row16_27_SparseWeightGradientsAddUpAtTheOwner) {
  RRef<Lab> lab = (*this)[0].remote<Lab>("worker1", 1.0);
  const at::Tensor indices = at::tensor({1, 1, 3}, at::kLong);
  Context context((*this)[0]);
  for (int pass = 0; pass < 2; ++pass) context.backward({lab.rpc_sync<&Lab::looked_up>(indices).sum()});
  EXPECT_EQ(lab.rpc_sync<&Lab::table_gradient>(), (std::vector<double>{0, 0, 4, 4, 0, 0, 2, 2}));
}

}  // namespace
}  // namespace caftan::test::autograd_backward_rows_test
