// Remote modules over a cluster: rows 22.01 to 22.10 of PyTorch's own suite, modes, states, open contexts, functions
// around methods, and what is left at the end. Row 22.07 (methods that a remote module lacks) is the compiler's.
#include "caftan/nn/remote_module.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/nn/internal/module_control.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test::remote_module_test {
namespace {

using ::testing::HasSubstr;

struct Scaling {
  double by = 1;
  std::string word = "default";
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& by& word;
  }
};
using Triple = std::tuple<at::Tensor, double, std::string>;

/// A plain class: one layer, whose weight has two names.
class Net {
 public:
  explicit Net(int seed)
      : weight_(at::linspace(-1, 1 + seed, 12).view({4, 3}).contiguous().requires_grad_()),
        bias_(at::full({3}, 0.5).requires_grad_()) {
    if (seed < 0) throw std::invalid_argument("no seed is negative");
  }

  std::vector<nn::NamedTensor> named_parameters() const {
    return {{"weight", weight_}, {"bias", bias_}, {"tied", weight_}};
  }
  std::vector<nn::NamedTensor> named_buffers() const { return {{"calls", calls_}}; }
  void train(bool on) { training_ = on; }

  at::Tensor forward(const at::Tensor& x) {
    if (training_) calls_.add_(1);
    return x.matmul(weight_) + bias_;
  }
  Triple scaled(const at::Tensor& x, const Scaling& scaling) const {
    return {x * scaling.by, scaling.by, scaling.word};
  }
  bool is_in_train_mode() const { return training_; }
  /// Waits for a call of another worker, and returns whether the mode is still the same.
  bool keeps_its_mode(Worker& worker, const std::string& other);
  at::Tensor call_itself(const nn::RemoteModule<Net>& self, const at::Tensor& x) const { return self.forward(x); }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor calls_ = at::zeros({1});
  bool training_ = true;
};

int five() { return 5; }
bool Net::keeps_its_mode(Worker& worker, const std::string& other) {
  const bool before = training_;
  worker.rpc_sync<&five>(other);
  return training_ == before;
}

void halve(Net&, at::Tensor& x) { x = x * 0.5; }
void add_one(Net&, at::Tensor& y) { y = y + 1; }
void refuse(Net&, at::Tensor&) { throw std::runtime_error("not today"); }

/// As many parameters as a middle-sized model.
class Wide {
 public:
  explicit Wide(int parameters) {
    for (int i = 0; i < parameters; ++i) {
      weights_.push_back({"w" + std::to_string(i), at::full({256}, 0.5 * i).requires_grad_()});
    }
  }
  std::vector<nn::NamedTensor> named_parameters() const { return weights_; }

 private:
  std::vector<nn::NamedTensor> weights_;
};

/// A subclass of torch's, with a child.
class Child : public torch::nn::Module {
 public:
  Child() : weight_(register_parameter("weight", at::full({2}, 3.0))) {}
  at::Tensor forward(const at::Tensor& x) { return is_training() ? x * weight_ : x; }

 private:
  at::Tensor weight_;
};
class Parent : public torch::nn::Module {
 public:
  Parent()
      : child_(register_module("child", std::make_shared<Child>())), count_(register_buffer("count", at::zeros({1}))) {}
  at::Tensor forward(const at::Tensor& x) { return child_->forward(x); }

 private:
  std::shared_ptr<Child> child_;
  at::Tensor count_;
};

at::Tensor forward_there(const nn::RemoteModule<Net>& net, const at::Tensor& x) { return net.forward_async(x).get(); }
std::tuple<std::string, bool> look_at(const nn::RemoteModule<Net>& net) {
  return {net.owner_name(), net.is_training()};
}
/// Makes a second handle there, with a mode of its own.
bool evaluate_there(nn::RemoteModule<Net> net) {
  net.eval();
  return net.rpc_sync<&Net::is_in_train_mode>();
}
nn::RemoteModule<Net> hand_back(const nn::RemoteModule<Net>& net) { return net; }

Registry make_registry() {
  Registry registry;
  registry.add<&five>("five");
  registry.add<&forward_there>("forward_there");
  registry.add<&look_at>("look_at");
  registry.add<&evaluate_there>("evaluate_there");
  registry.add<&hand_back>("hand_back");
  nn::add_module<Net>(registry, "net")
      .constructor<int>()
      .method<&Net::forward>("forward")
      .method<&Net::scaled>("scaled")
      .method<&Net::is_in_train_mode>("is_in_train_mode")
      .method<&Net::keeps_its_mode>("keeps_its_mode")
      .method<&Net::call_itself>("call_itself")
      .before<&Net::forward, &halve>("halve")
      .before<&Net::forward, &refuse>("refuse")
      .after<&Net::forward, &add_one>("add_one");
  nn::add_module<Wide>(registry, "wide").constructor<int>();
  nn::add_module<Parent>(registry, "parent").constructor<>().method<&Parent::forward>("forward");
  return registry;
}

/// A handle that shows its control.
template <class M>
struct Opened : nn::RemoteModule<M> {
  explicit Opened(const nn::RemoteModule<M>& other) : nn::RemoteModule<M>(other) {}
  /// A handle of another class for the module that `other` refers to.
  explicit Opened(const RRef<nn::ServedModule>& other) { this->module_ = other; }
  const RRef<nn::ModuleControl>& control() const { return this->control_; }
};

at::Tensor input() { return at::linspace(-1, 2, 8).view({2, 4}); }

std::map<std::string, at::Tensor> by_name(const nn::StateDict& state) {
  std::map<std::string, at::Tensor> named;
  for (const nn::NamedTensor& one : state) named.emplace(one.name, one.tensor);
  return named;
}

class RemoteModules : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Worker& here() { return cluster_["worker0"]; }
  nn::RemoteModule<Net> make(int seed = 1) { return nn::RemoteModule<Net>(here(), "worker1", seed); }

  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, RemoteModules, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(RemoteModules, Row22_01_AnErrorOfTheConstructorIsThatOfEachUse) {
  const nn::RemoteModule<Net> net = make(-1);
  for (int use = 0; use < 2; ++use) {
    EXPECT_THAT(net.try_rpc_sync<&Net::forward>(input()).error().message(), HasSubstr("no seed is negative"));
    EXPECT_THAT(net.try_parameters().error().message(), HasSubstr("no seed is negative"));
  }
  EXPECT_THAT(net.created().result().error().message(), HasSubstr("no seed is negative"));
}

TEST_P(RemoteModules, WhatIsNotRegisteredIsNamed) {
  const Error no_class = nn::RemoteModule<Child>::try_make(here(), "worker1").error();
  EXPECT_EQ(no_class.code(), Errc::unknown_function);
  EXPECT_THAT(no_class.text(), HasSubstr("Child()"));
  EXPECT_EQ(nn::RemoteModule<Net>::try_make(here(), "worker1", 1.5).error().code(), Errc::unknown_function);
  EXPECT_EQ(nn::RemoteModule<Net>::try_make(here(), "worker7", 1).error().code(), Errc::unknown_worker);
  const Error no_method = make().try_rpc_sync<&Net::train>(true).error();
  EXPECT_EQ(no_method.code(), Errc::unknown_function);
  EXPECT_THAT(no_method.text(), HasSubstr("Net::train"));
  EXPECT_EQ(nn::RemoteModule<Net>().try_parameters().error().code(), Errc::bad_arguments);
}

TEST_P(RemoteModules, Row22_02_ACallReturnsThreeValues) {
  const auto [scaled, by, word] = make().rpc_sync<&Net::scaled>(input(), Scaling{.by = 2, .word = "w"});
  EXPECT_TRUE(at::equal(scaled, input() * 2));
  EXPECT_EQ(by, 2);
  EXPECT_EQ(word, "w");
}

TEST_P(RemoteModules, Row22_03_ArgumentsHaveDefaultsInBothWaysToCall) {
  const nn::RemoteModule<Net> net = make();
  EXPECT_EQ(std::get<2>(net.rpc_async<&Net::scaled>(input(), Scaling{.by = 3}).get()), "default");
  EXPECT_EQ(std::get<1>(net.rpc_sync<&Net::scaled>(input(), Scaling{})), 1);
  Net local(1);
  EXPECT_TRUE(at::equal(net.forward(input()), local.forward(input())));
  EXPECT_TRUE(at::equal(net.forward_async(input()).get(), local.forward(input())));
  EXPECT_TRUE(at::equal(net.forward_remote(input()).to_here(), local.forward(input())));
}

TEST_P(RemoteModules, Row22_04_ParametersHaveTheValuesOfTheModule) {
  const nn::RemoteModule<Net> net = make();
  const Net local(1);
  const auto named = net.named_parameters();
  ASSERT_EQ(named.size(), 2U);
  EXPECT_EQ(named[1].name, "bias");
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(named[i].name, local.named_parameters()[i].name);
    EXPECT_EQ(named[i].tensor.owner_name(), "worker1");
    EXPECT_TRUE(at::equal(named[i].tensor.to_here(), local.named_parameters()[i].tensor));
  }
  ASSERT_EQ(net.named_buffers().size(), 1U);
  EXPECT_EQ(net.named_buffers()[0].name, "calls");
}

TEST_P(RemoteModules, Row22_05_TheReferenceToTheModuleIsTheSameEachTime) {
  const nn::RemoteModule<Net> net = make();
  const RRefId id = net.module_rref().id();
  EXPECT_EQ(net.module_rref().id(), id);
  EXPECT_EQ(here().rpc_sync<&hand_back>("worker2", net).module_rref().id(), id);
}

TEST_P(RemoteModules, Row22_06_TrainAndEvalSwitchTheMode) {
  nn::RemoteModule<Net> net = make();
  EXPECT_TRUE(net.rpc_sync<&Net::is_in_train_mode>());
  net.eval();
  EXPECT_FALSE(net.rpc_sync<&Net::is_in_train_mode>());
  net.train(false);
  EXPECT_FALSE(net.rpc_sync<&Net::is_in_train_mode>());
  net.train();
  EXPECT_TRUE(net.rpc_sync<&Net::is_in_train_mode>());
}

TEST_P(RemoteModules, Row22_08_OnlyACallCarriesAHandle) {
  EXPECT_EQ(wire::encode(make()).error().code(), Errc::unsupported);
}

TEST_P(RemoteModules, Row22_09_AHandleWorksWhereItIsSent) {
  nn::RemoteModule<Net> net = make();
  Net local(1);
  EXPECT_TRUE(at::equal(here().rpc_sync<&forward_there>("worker2", net, input()), local.forward(input())));
  net.eval();
  EXPECT_EQ(here().rpc_sync<&look_at>("worker2", net), std::tuple("worker1", false));
}

TEST_P(RemoteModules, Row22_10_ASecondHandleOfTheSameModuleHasItsOwnMode) {
  const nn::RemoteModule<Net> net = make();
  EXPECT_FALSE(here().rpc_sync<&evaluate_there>("worker2", net));
  EXPECT_TRUE(net.rpc_sync<&Net::is_in_train_mode>());
}

TEST_P(RemoteModules, MD2_ACallThatComesBackIsRefused) {
  const nn::RemoteModule<Net> net = make();
  const Error error = net.try_rpc_sync<&Net::call_itself>(net, input()).error();
  EXPECT_THAT(error.message(), HasSubstr("would_deadlock"));
}

TEST_P(RemoteModules, MD3_AModeHoldsUntilItsCallReturns) {
  const nn::RemoteModule<Net> trained = make();
  nn::RemoteModule<Net> evaluated = trained;
  evaluated.eval();
  std::vector<Future<bool>> kept;
  for (int i = 0; i < 5; ++i) {
    kept.push_back(trained.rpc_async<&Net::keeps_its_mode>("worker2"));
    kept.push_back(evaluated.rpc_async<&Net::keeps_its_mode>("worker0"));
  }
  for (Future<bool>& one : kept) EXPECT_TRUE(one.get());
  for (int i = 0; i < 3; ++i) {
    trained.forward(input());
    evaluated.forward(input());
  }
  EXPECT_EQ(trained.buffers()[0].to_here().item<double>(), 3);
}

TEST_P(RemoteModules, MD3_ASubclassOfTorchHasItsModeAndItsTensors) {
  nn::RemoteModule<Parent> net(here(), "worker1");
  EXPECT_TRUE(at::equal(net.forward(at::ones({2})), at::full({2}, 3.0)));
  net.eval();
  EXPECT_TRUE(at::equal(net.forward(at::ones({2})), at::ones({2})));
  EXPECT_EQ(net.named_parameters()[0].name, "child.weight");
  EXPECT_EQ(net.named_buffers()[0].name, "count");
  EXPECT_EQ(net.state_dict().size(), 2U);
}

TEST_P(RemoteModules, MD4_ReferencesAreTheSameForAllHandles) {
  const nn::RemoteModule<Net> net = make();
  const auto first = net.parameters();
  const auto second = here().rpc_sync<&hand_back>("worker2", net).parameters();
  ASSERT_EQ(first.size(), 2U) << "the weight is listed once";
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].id(), second[i].id());
  EXPECT_NE(first[0].id(), first[1].id());
}

TEST_P(RemoteModules, MD5_AllParametersAreListedInOneRoundTripWithoutTheirValues) {
  const nn::RemoteModule<Wide> net(here(), "worker1", 161);
  net.created().get();
  cluster_.run_until_idle();
  const auto before = here().counters();
  const auto calls = cluster_.network().count(wire::FrameKind::method);
  EXPECT_EQ(net.parameters().size(), 161U);
  EXPECT_EQ(cluster_.network().count(wire::FrameKind::method) - calls, 1U);
  EXPECT_LT(here().counters().bytes_in - before.bytes_in, 161U * 256 * 4);
}

TEST_P(RemoteModules, MD6_AStateIsThatOfOneMoment) {
  const Opened<Net> net(make());
  const nn::SavedModule saved = net.control().rpc_sync<&nn::ModuleControl::save>();
  nn::StateDict other = net.state_dict();
  for (nn::NamedTensor& one : other) one.tensor = at::full(one.tensor.sizes(), 7.0);
  net.load_state_dict(other);
  const auto values = saved.source.rpc_sync<&nn::StateSource::read>(nn::Chunk{{0, 0, 12}});
  EXPECT_TRUE(at::equal(values[0].view({4, 3}), Net(1).named_parameters()[0].tensor));
  EXPECT_TRUE(at::equal(by_name(net.state_dict()).at("bias"), at::full({3}, 7.0)));
}

TEST_P(RemoteModules, MD8_AStateComesBackAsItWas) {
  const nn::RemoteModule<Net> one = make(1);
  const nn::RemoteModule<Net> two(here(), "worker2", 2);
  two.forward(input());
  nn::StateDict state = two.state_dict({.chunk = 20});
  ASSERT_EQ(state.size(), 4U);
  std::reverse(state.begin(), state.end());
  one.load_state_dict(state, {.chunk = 12});
  const auto loaded = by_name(one.state_dict());
  for (const nn::NamedTensor& named : state) {
    EXPECT_TRUE(at::equal(loaded.at(named.name), named.tensor)) << named.name;
    EXPECT_FALSE(loaded.at(named.name).requires_grad());
  }
  EXPECT_TRUE(at::equal(one.forward(input()), two.forward(input())));
}

TEST_P(RemoteModules, MD8_AStateThatDoesNotFitChangesNothing) {
  const nn::RemoteModule<Net> net = make();
  const nn::StateDict before = net.state_dict();
  nn::StateDict wrong = before;
  for (nn::NamedTensor& one : wrong) one.tensor = at::full(one.tensor.sizes(), 7.0);
  wrong[1].tensor = at::zeros({5});
  wrong[3].name = "steps";
  const Error error = net.try_load_state_dict(wrong).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  for (const char* named : {"'bias' is Float [5]", "no 'steps'", "'calls' is missing"}) {
    EXPECT_THAT(error.text(), HasSubstr(named));
  }
  const nn::StateDict after = net.state_dict();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(after[i].tensor, before[i].tensor)) << i;
}

TEST_P(RemoteModules, MD8_APartOfAStateIsNotTaken) {
  const Opened<Net> net(make());
  const nn::StateDict state = net.state_dict();
  const auto place = net.control().rpc_sync<&nn::ModuleControl::stage>(nn::describe(state).value());
  place.rpc_sync<&nn::StagedState::put>(nn::Chunk{{0, 0, 2}}, std::vector<at::Tensor>{at::full({2}, 7.0)});
  const auto taken = net.control().try_rpc_sync<&nn::ModuleControl::take>(place, base::Duration::zero());
  EXPECT_EQ(taken.error().code(), Errc::bad_arguments);
  EXPECT_TRUE(at::equal(net.state_dict()[0].tensor, state[0].tensor));
}

TEST_P(RemoteModules, MD10_AStateIsNotLoadedIntoAnOpenContext) {
  const nn::RemoteModule<Net> net = make();
  const nn::StateDict state = net.state_dict();
  {
    const autograd::Context context(here());
    const at::Tensor loss = net.forward(input()).sum();
    EXPECT_EQ(net.try_load_state_dict(state).error().code(), Errc::module_busy);
    EXPECT_EQ(net.try_to("cpu").error().code(), Errc::module_busy);
    EXPECT_EQ(net.parameters().size(), 2U);
    context.backward({loss});
  }
  EXPECT_TRUE(net.try_load_state_dict(state)) << "waits for the end of the context to arrive";
  EXPECT_TRUE(net.try_to("cpu"));
  EXPECT_EQ(net.try_to("cuda:0").error().code(), Errc::unsupported);
  EXPECT_EQ(net.try_to("gpu7x").error().code(), Errc::bad_arguments);
}

TEST_P(RemoteModules, MD11_FunctionsRunBeforeAndAfterAMethod) {
  const nn::RemoteModule<Net> net = make();
  Net local(1);
  const at::Tensor plain = local.forward(input());
  net.add_before<&Net::forward, &halve>();
  net.add_before<&Net::forward, &halve>();
  net.add_after<&Net::forward, &add_one>();
  EXPECT_TRUE(at::equal(net.forward(input()), local.forward(input() * 0.5) + 1));
  {
    const autograd::Context context(here());
    const at::Tensor x = input().requires_grad_();
    context.backward({net.forward(x).sum()});
    const at::Tensor expected = local.named_parameters()[0].tensor.detach().sum(1) * 0.5;
    EXPECT_TRUE(context.gradients().of(x)[0].allclose(expected));
  }
  net.add_before<&Net::forward, &refuse>();
  EXPECT_THAT(net.try_rpc_sync<&Net::forward>(input()).error().message(), HasSubstr("not today"));
  net.remove_before<&Net::forward, &refuse>();
  net.remove_before<&Net::forward, &halve>();
  net.remove_after<&Net::forward, &add_one>();
  EXPECT_TRUE(at::equal(net.forward(input()), plain));
}

TEST_P(RemoteModules, MD12_AMethodOfAnotherClassIsRefused) {
  const Opened<Parent> wrong(make().module_rref());
  EXPECT_EQ(wrong.try_rpc_sync<&Parent::forward>(input()).error().code(), Errc::wrong_type);
}

TEST_P(RemoteModules, MD1_ATrainingStepsTheModuleAsALocalOne) {
  const nn::RemoteModule<Net> net = make();
  Net local(1);
  const std::vector<at::Tensor> own = {local.named_parameters()[0].tensor, local.named_parameters()[1].tensor};
  const optim::SGD sgd{.lr = 0.1, .momentum = 0.9};
  optim::DistributedOptimizer optimizer(here(), net.parameters(), sgd);
  optim::LocalOptimizer expected = optim::LocalOptimizer::make({{own, sgd}}).value();
  for (int step = 0; step < 3; ++step) {
    const autograd::Context context(here());
    context.backward({net.forward(input()).tanh().sum()});
    optimizer.step(context);
    for (const at::Tensor& parameter : own) parameter.mutable_grad() = at::Tensor();
    local.forward(input()).tanh().sum().backward();
    ASSERT_TRUE(expected.step(std::vector<at::Tensor>{own[0].grad(), own[1].grad()}));
  }
  const auto state = by_name(net.state_dict());
  EXPECT_TRUE(at::equal(state.at("weight"), own[0].detach()));
  EXPECT_TRUE(at::equal(state.at("bias"), own[1].detach()));
}

TEST_P(RemoteModules, MD13_NothingIsLeftWhenTheLastHandleIsGone) {
  {
    const nn::RemoteModule<Net> net = make();
    const auto parameters = net.parameters();
    net.state_dict();
  }
  cluster_.run_until_idle();
  for (const char* name : {"worker0", "worker1"}) {
    EXPECT_EQ(cluster_[name].counters().owner_rrefs, 0U) << name;
    EXPECT_EQ(cluster_[name].counters().user_rrefs, 0U) << name;
  }
}

TEST_P(RemoteModules, ALostOwnerIsAnError) {
  const nn::RemoteModule<Net> net = make();
  const nn::StateDict state = net.state_dict();
  cluster_.network().kill("worker1");
  EXPECT_EQ(net.try_rpc_sync<&Net::forward>(input()).error().code(), Errc::peer_down);
  EXPECT_EQ(net.try_load_state_dict(state).error().code(), Errc::peer_down);
}

TEST(RemoteModuleLimits, MD7_AStateLargerThanAMessageTravelsInPieces) {
  testing::Cluster cluster(1, {"worker0", "worker1"}, make_registry,
                           [](WorkerOptions& options) { options.limits.tensors = 1000; });
  const nn::RemoteModule<Wide> net(cluster[0], "worker1", 161);  // 164,864 bytes
  EXPECT_EQ(net.try_state_dict().error().code(), Errc::limit_exceeded);
  nn::StateDict state = net.state_dict({.chunk = 900});
  ASSERT_EQ(state.size(), 161U);
  for (nn::NamedTensor& one : state) one.tensor = one.tensor + at::arange(256);
  net.load_state_dict(state, {.chunk = 900});
  const nn::StateDict loaded = net.state_dict({.chunk = 700});
  for (std::size_t i = 0; i < state.size(); ++i) ASSERT_TRUE(at::equal(loaded[i].tensor, state[i].tensor)) << i;
}

}  // namespace
}  // namespace caftan::test::remote_module_test
