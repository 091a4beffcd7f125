// Modules of TorchScript files as remote modules: rows 13.18 and 13.19 of PyTorch's own suite, parameters, training,
// modes, states, and what such a file may do (docs/protocols/script.md, docs/protocols/modules.md).
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/nn/script_module.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "script_files.hpp"

namespace caftan::test::script_module_test {
namespace {

using nn::ScriptModule;
using rpc::kwarg;
using ::testing::HasSubstr;
using Net = nn::RemoteModule<ScriptModule>;

constexpr const char* kCode = R"(
def forward(self, x, by : float = 1.0):
    if self.training:
        self.calls.add_(1)
    return torch.matmul(x, self.weight) * by + self.inner.shift(x)
def both(self, x):
    return x + 1, self.training
def count(self, x):
    self.steps = self.steps + 1
    return x * self.steps
def noisy(self, x):
    return torch.dropout(x, 0.5, self.training)
def boom(self, x):
    assert x.numel() > 100, "expected error"
    return x
)";
constexpr const char* kInner = "def shift(self, x):\n  return self.weight.sum()\n";

at::Tensor scaled(const Net& net, const at::Tensor& x, double by) { return net.forward(x, kwarg("by", by)); }

class ScriptModules : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Registry make_registry() const {
    Registry registry;
    registry.add_script_module("net", file_);
    registry.add<&scaled>("scaled");
    return registry;
  }
  Worker& here() { return cluster_[0]; }
  Net make() { return {here(), "worker1", "net"}; }

  const ScriptFolder folder_;
  const at::Tensor weight_ = at::linspace(-1, 1, 6).view({3, 2}).contiguous();
  const std::filesystem::path file_ =
      folder_.save("net.pt", {.code = kCode,
                              .parameters = {{"weight", weight_.clone().requires_grad_()}},
                              .buffers = {{"calls", at::zeros({1})}},
                              .inner = kInner});
  const at::Tensor x_ = at::ones({2, 3});
  const at::Tensor y_ = x_.matmul(weight_) + weight_.sum();
  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, [this] { return make_registry(); }};
};
INSTANTIATE_TEST_SUITE_P(Seeds, ScriptModules, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(ScriptModules, Row13_18_AModuleRunsAtItsOwnerAndIsNotFetched) {
  const Net net = make();
  EXPECT_EQ(net.owner_name(), "worker1");
  EXPECT_TRUE(net.forward(x_).equal(y_));
  EXPECT_TRUE(net.forward_async(x_).get().equal(y_));
  EXPECT_TRUE(net.forward_remote(x_).to_here().equal(y_));
  EXPECT_EQ(net.module_rref().is_owner(), false);  // and RRef<ServedModule> has no to_here that compiles
}

TEST_P(ScriptModules, Row13_19_AHandleIsPassedOnAndItsMethodsAreCalled) {
  const Net net = make();
  EXPECT_TRUE(here().rpc_sync<&scaled>("worker2", net, x_, 2.0).equal(x_.matmul(weight_) * 2 + weight_.sum()));
  const auto results = net.call_async("both", x_).get();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(std::get<at::Tensor>(results[0]).equal(x_ + 1));
  EXPECT_EQ(net.try_call("both", x_).error().code(), Errc::wrong_type);
}

TEST_P(ScriptModules, SC16_EachModuleHasParametersOfItsOwn) {
  const Net one = make();
  const Net other = make();
  nn::StateDict state = one.state_dict();
  for (nn::NamedTensor& named : state) named.tensor.zero_();
  one.load_state_dict(state);
  EXPECT_TRUE(one.forward(x_).equal(at::zeros({2, 2})));
  EXPECT_TRUE(other.forward(x_).equal(y_));
}

TEST_P(ScriptModules, MD4_MD5_ParametersAndBuffersHaveTheNamesOfTheFile) {
  const Net net = make();
  std::vector<std::string> names;
  for (const nn::NamedReference& named : net.named_parameters()) names.push_back(named.name);
  EXPECT_THAT(names, ::testing::ElementsAre("weight", "inner.weight"));
  EXPECT_TRUE(net.parameters()[0].to_here().equal(weight_));
  EXPECT_EQ(net.parameters()[0].id(), net.parameters()[0].id());
  ASSERT_EQ(net.named_buffers().size(), 2U);
  EXPECT_EQ(net.named_buffers()[0].name, "calls");
}

TEST_P(ScriptModules, MD3_TheModeIsThatOfTheHandle) {
  const Net training = make();
  Net evaluation = training;
  evaluation.eval();
  training.forward(x_);
  evaluation.forward(x_);
  training.forward(x_);
  EXPECT_EQ(training.buffers()[0].to_here().item<double>(), 2);
  EXPECT_TRUE(std::get<bool>(training.call_async("both", x_).get()[1]));
  EXPECT_FALSE(std::get<bool>(evaluation.call_async("both", x_).get()[1]));
  EXPECT_TRUE(evaluation.call("noisy", x_).equal(x_));
}

TEST_P(ScriptModules, SC15_AModuleChangesItsOwnState) {
  const Net net = make();
  EXPECT_TRUE(net.call("count", x_).equal(x_));
  EXPECT_TRUE(net.call("count", x_).equal(x_ * 2));
  EXPECT_TRUE(make().call("count", x_).equal(x_));
}

TEST_P(ScriptModules, SC15_ItIsTrainedWhereItLives) {
  const Net net = make();
  optim::DistributedOptimizer optimizer(here(), net.parameters(), optim::SGD{.lr = 0.1});
  at::Tensor weight = weight_.clone().requires_grad_();
  at::Tensor inner = weight_.clone().requires_grad_();
  for (int step = 0; step < 3; ++step) {
    const autograd::Context context(here());
    context.backward({net.forward(x_).pow(2).sum()});
    optimizer.step(context);
    (x_.matmul(weight) * 1.0 + inner.sum()).pow(2).sum().backward();
    for (at::Tensor* const local : {&weight, &inner}) {
      *local = (local->detach() - local->grad() * 0.1).requires_grad_();
    }
  }
  EXPECT_TRUE(net.parameters()[0].to_here().allclose(weight));
  EXPECT_TRUE(net.parameters()[1].to_here().allclose(inner));
}

TEST_P(ScriptModules, ErrorsNameWhatIsWrong) {
  const Net none(here(), "worker1", "other");
  EXPECT_EQ(none.try_forward(x_).error().code(), Errc::unknown_function);
  EXPECT_THAT(none.try_forward(x_).error().text(),
              HasSubstr("no module of TorchScript \"other\": [roles.NAME.modules] other"));
  EXPECT_THAT(none.try_parameters().error().text(), HasSubstr("it has: net"));
  const Net net = make();
  EXPECT_EQ(net.try_call("absent", x_).error().code(), Errc::unknown_function);
  EXPECT_THAT(net.try_call("absent", x_).error().text(), HasSubstr("(it has: forward, both, count, noisy, boom)"));
  EXPECT_EQ(net.try_forward(x_, 2).error().code(), Errc::bad_arguments);
  EXPECT_THAT(net.try_call("boom", x_).error().text(), HasSubstr("expected error"));
  EXPECT_EQ(Net().try_forward(x_).error().code(), Errc::bad_arguments);
}

TEST_P(ScriptModules, SC16_AFileThatHasChangedIsLookedAtAgain) {
  folder_.save("net.pt", {.code = "def forward(self, x):\n  print(x)\n  return x\n"});
  const Error changed = make().try_forward(x_).error();
  EXPECT_EQ(changed.code(), Errc::invalid_config);
  EXPECT_THAT(changed.text(), HasSubstr(file_.string() + " method 'forward' calls prim::Print"));
  std::filesystem::remove(file_);
  EXPECT_EQ(make().try_forward(x_).error().code(), Errc::io_error);
}

TEST(ScriptModuleFiles, SC8_ARegistryNamesTheModuleItsFileAndWhatIsWrong) {
  const ScriptFolder folder;
  Registry registry;
  registry.add_script_module("net", folder.save("net.pt", {.code = "def forward(self, x):\n  print(x)\n  return x\n"}));
  const Error error = registry.freeze().error();
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_THAT(error.text(), HasSubstr("module 'net', " + (folder / "net.pt").string() + ": method 'forward' calls"));
}

}  // namespace
}  // namespace caftan::test::script_module_test
