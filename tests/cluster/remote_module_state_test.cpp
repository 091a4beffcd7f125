// The tensors of remote modules over a cluster: lists of parameters, states, open contexts, training, and what is left
// when the last handle is gone.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "module_roles.hpp"

namespace caftan::test::remote_module_state_test {
namespace {

using ::testing::HasSubstr;

class RemoteModuleStates : public RemoteModules {};
INSTANTIATE_TEST_SUITE_P(Seeds, RemoteModuleStates, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(RemoteModuleStates, MD4_ReferencesAreTheSameForAllHandles) {
  const nn::RemoteModule<Net> net = make();
  const auto first = net.parameters();
  const auto second = here().rpc_sync<&hand_back>("worker2", net).parameters();
  ASSERT_EQ(first.size(), 2U) << "the weight is listed once";
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].id(), second[i].id());
  EXPECT_NE(first[0].id(), first[1].id());
}

TEST_P(RemoteModuleStates, MD5_AllParametersAreListedInOneRoundTripWithoutTheirValues) {
  const nn::RemoteModule<Wide> net(here(), "worker1", 161);
  net.created().get();
  cluster_.run_until_idle();
  const auto before = here().counters();
  const auto calls = cluster_.network().count(wire::FrameKind::method);
  EXPECT_EQ(net.parameters().size(), 161U);
  EXPECT_EQ(cluster_.network().count(wire::FrameKind::method) - calls, 1U);
  EXPECT_LT(here().counters().bytes_in - before.bytes_in, 161U * 256 * 4);
}

TEST_P(RemoteModuleStates, MD6_AStateIsThatOfOneMoment) {
  const Opened<Net> net(make());
  const nn::SavedModule saved = net.control().rpc_sync<&nn::ModuleControl::save>();
  nn::StateDict other = net.state_dict();
  for (nn::NamedTensor& one : other) one.tensor = at::full(one.tensor.sizes(), 7.0);
  net.load_state_dict(other);
  const auto values = saved.source.rpc_sync<&nn::StateSource::read>(nn::Chunk{{0, 0, 12}});
  EXPECT_TRUE(at::equal(values[0].view({4, 3}), Net(1).named_parameters()[0].tensor));
  EXPECT_TRUE(at::equal(by_name(net.state_dict()).at("bias"), at::full({3}, 7.0)));
}

TEST_P(RemoteModuleStates, MD8_AStateComesBackAsItWas) {
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

TEST_P(RemoteModuleStates, MD8_AStateThatDoesNotFitChangesNothing) {
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

TEST_P(RemoteModuleStates, MD8_APartOfAStateIsNotTaken) {
  const Opened<Net> net(make());
  const nn::StateDict state = net.state_dict();
  const auto place = net.control().rpc_sync<&nn::ModuleControl::stage>(nn::describe(state).value());
  place.rpc_sync<&nn::StagedState::put>(nn::Chunk{{0, 0, 2}}, std::vector<at::Tensor>{at::full({2}, 7.0)});
  const auto taken = net.control().try_rpc_sync<&nn::ModuleControl::take>(place, base::Duration::zero());
  EXPECT_EQ(taken.error().code(), Errc::bad_arguments);
  EXPECT_TRUE(at::equal(net.state_dict()[0].tensor, state[0].tensor));
}

TEST_P(RemoteModuleStates, MD10_AStateIsNotLoadedIntoAnOpenContext) {
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

TEST_P(RemoteModuleStates, MD1_ATrainingStepsTheModuleAsALocalOne) {
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

TEST_P(RemoteModuleStates, MD13_NothingIsLeftWhenTheLastHandleIsGone) {
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

TEST(RemoteModuleLimits, MD7_AStateLargerThanAMessageTravelsInPieces) {
  testing::Cluster cluster(1, {"worker0", "worker1"}, make_module_registry,
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
}  // namespace caftan::test::remote_module_state_test
