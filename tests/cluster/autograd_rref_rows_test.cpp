// Rows 16.28 and 16.29 of PyTorch's own suite: backward from a tensor that another worker keeps.
#include <gmock/gmock.h>

#include "autograd_rows.hpp"
#include "caftan/autograd/rref_backward.hpp"

namespace caftan::test::autograd_rref_rows_test {
namespace {

using ::testing::HasSubstr;

class RRefRows : public RowsCluster {
 protected:
  Worker& here() { return (*this)[0]; }
};
INSTANTIATE_TEST_SUITE_P(Seeds, RRefRows, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(RRefRows, Row16_28_BackwardFromAReferenceOfTheOwner) {
  const at::Tensor x = leaf({1, 2});
  RRef<at::Tensor> plain = here().make_rref((x * x).sum());
  plain.local_value()->backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 4}));

  Context context(here());
  RRef<at::Tensor> loss = here().make_rref(here().rpc_sync<&square>("worker1", x).sum());
  autograd::backward(context, loss, {.retain_graph = true});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4}));
  autograd::backward(context, loss);
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{4, 8}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 4}));

  const auto error_of = [&](const at::Tensor& root) {
    return autograd::try_backward(context, here().make_rref(root)).error();
  };
  EXPECT_THAT(error_of(at::ones({1})).text(), HasSubstr("root 0 requires no grad"));
  EXPECT_THAT(error_of(x * 2).text(), HasSubstr("only a scalar"));
  EXPECT_EQ(autograd::try_backward(context, RRef<at::Tensor>()).error().code(), Errc::bad_arguments);
  EXPECT_EQ(autograd::try_backward(context, loss, {.gradients = {at::ones({})}}).error().code(), Errc::bad_arguments);
}

TEST_P(RRefRows, Row16_29_BackwardFromAReferenceOfAnotherWorker) {
  RRef<Lab> lab = here().remote<Lab>("worker1", 1.0);
  const at::Tensor x = leaf({1, 2, 3});
  std::optional<Context> context(std::in_place, here());
  RRef<at::Tensor> loss = here().remote<&sum_of>(
      "worker1",
      std::vector<at::Tensor>{lab.rpc_sync<&Lab::add_own>(x).sum(), here().rpc_sync<&square>("worker2", x).sum()});
  autograd::backward(*context, loss, {.retain_graph = true});
  EXPECT_EQ(values(context->gradients().of(x)), (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(lab.rpc_sync<&Lab::own_gradient>(), (std::vector<double>{1, 1, 1}));
  autograd::backward(*context, loss);
  EXPECT_EQ(values(context->gradients().of(x)), (std::vector<double>{6, 10, 14}));

  RRef<at::Tensor> vector = lab.remote<&Lab::add_own>(x);
  const Error refused = autograd::try_backward(*context, vector).error();
  EXPECT_EQ(refused.code(), Errc::bad_arguments);
  EXPECT_THAT(refused.text(), HasSubstr("only a scalar"));
  const autograd::ContextView view = *context;
  context.reset();
  run_until_idle();
  EXPECT_EQ(autograd::try_backward(view, loss).error().code(), Errc::context_released);
  loss = {};
  vector = {};
  expect_no_contexts(4);
}

TEST_P(RRefRows, ALostOwnerIsNamed) {
  const at::Tensor x = leaf({1, 2, 3});
  const Context context(here());
  RRef<at::Tensor> loss = here().remote<&sum_of>("worker1", std::vector<at::Tensor>{(x * 2).sum()});
  run_until_idle();
  net_.kill("worker1");
  const Error error = autograd::try_backward(context, loss).error();
  EXPECT_EQ(error.code(), Errc::peer_down);
  EXPECT_THAT(error.message(), HasSubstr("worker1"));
}

}  // namespace
}  // namespace caftan::test::autograd_rref_rows_test
