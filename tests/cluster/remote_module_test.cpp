// Calls of remote modules over a cluster: rows 22.01 to 22.10 of PyTorch's own suite, modes, and functions around
// methods.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/nn/shared_module.hpp"
#include "module_roles.hpp"

namespace caftan::test::remote_module_test {
namespace {

using ::testing::HasSubstr;

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

TEST_P(RemoteModules, AClassThatOnlyTheOwnerLacksIsNamedWithItsRegistration) {
  int registries = 0;
  testing::Cluster cluster(GetParam(), {"owner", "user"}, [&registries] {
    Registry registry;
    if (registries++ > 0) nn::add_module<Net>(registry, "net").constructor<int>().method<&Net::forward>("forward");
    return registry;
  });
  const auto expect_advice = [](const Error& error) {
    EXPECT_EQ(error.code(), Errc::unknown_function);
    EXPECT_EQ(error.worker(), "owner");
    EXPECT_THAT(error.text(), HasSubstr("nn::add_module<Net>(registry, \"net\").constructor<int>()"));
  };
  const nn::RemoteModule<Net> net(cluster["user"], "owner", 1);
  expect_advice(net.created().result().error());
  expect_advice(net.try_rpc_sync<&Net::forward>(input()).error());  // the handle knows by now that it has no module
  expect_advice(nn::SharedModule<Net>(cluster["user"], "owner", {}, 1).try_join(0).error());
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

/// Whether the type of `net` has a method of that name.
#define CAFTAN_TEST_HAS(METHOD)      \
  ([]<class T>(const T&) {           \
    return requires { &T::METHOD; }; \
  }(net))

TEST(RemoteModuleMethods, Row22_07_WhatAHandleCannotDoForItsModuleIsNoMethodOfIt) {
  const nn::RemoteModule<Net> net;
  // Of the methods that PyTorch's RemoteModule refuses, these are none of a handle: the compiler refuses a call.
  EXPECT_FALSE(CAFTAN_TEST_HAS(register_buffer));
  EXPECT_FALSE(CAFTAN_TEST_HAS(register_parameter));
  EXPECT_FALSE(CAFTAN_TEST_HAS(add_module));
  EXPECT_FALSE(CAFTAN_TEST_HAS(apply));
  EXPECT_FALSE(CAFTAN_TEST_HAS(cuda));
  EXPECT_FALSE(CAFTAN_TEST_HAS(cpu));
  EXPECT_FALSE(CAFTAN_TEST_HAS(type));
  EXPECT_FALSE(CAFTAN_TEST_HAS(half));
  EXPECT_FALSE(CAFTAN_TEST_HAS(bfloat16));
  EXPECT_FALSE(CAFTAN_TEST_HAS(register_backward_hook));
  EXPECT_FALSE(CAFTAN_TEST_HAS(register_forward_hook));
  EXPECT_FALSE(CAFTAN_TEST_HAS(register_forward_pre_hook));
  EXPECT_FALSE(CAFTAN_TEST_HAS(children));
  EXPECT_FALSE(CAFTAN_TEST_HAS(named_children));
  EXPECT_FALSE(CAFTAN_TEST_HAS(modules));
  EXPECT_FALSE(CAFTAN_TEST_HAS(named_modules));
  EXPECT_FALSE(CAFTAN_TEST_HAS(requires_grad_));
  EXPECT_FALSE(CAFTAN_TEST_HAS(zero_grad));
  EXPECT_FALSE(CAFTAN_TEST_HAS(share_memory));
  EXPECT_FALSE(CAFTAN_TEST_HAS(extra_repr));
  // These it has; PyTorch's has not.
  EXPECT_TRUE(CAFTAN_TEST_HAS(state_dict));
  EXPECT_TRUE(CAFTAN_TEST_HAS(load_state_dict));
  EXPECT_TRUE(CAFTAN_TEST_HAS(to));
  EXPECT_TRUE(CAFTAN_TEST_HAS(parameters));
  EXPECT_TRUE(CAFTAN_TEST_HAS(named_parameters));
  EXPECT_TRUE(CAFTAN_TEST_HAS(buffers));
  EXPECT_TRUE(CAFTAN_TEST_HAS(named_buffers));
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

TEST_P(RemoteModules, ALostOwnerIsAnError) {
  const nn::RemoteModule<Net> net = make();
  const nn::StateDict state = net.state_dict();
  cluster_.network().kill("worker1");
  EXPECT_EQ(net.try_rpc_sync<&Net::forward>(input()).error().code(), Errc::peer_down);
  EXPECT_EQ(net.try_load_state_dict(state).error().code(), Errc::peer_down);
}

}  // namespace
}  // namespace caftan::test::remote_module_test
