// Wrong uses of shared modules over a cluster, and steps that fail: what is said, and that nothing is left half done.
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "caftan/nn/internal/shared_control.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "file_limit.hpp"
#include "shared_roles.hpp"

namespace caftan::test::shared_wrong_uses_test {
namespace {

using nn::ConsistencyMode;
using nn::SharedModule;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SharedWrongUses : public SharedCluster, public ::testing::TestWithParam<std::uint64_t> {
 protected:
  SharedWrongUses() : SharedCluster(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Seeds, SharedWrongUses, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(SharedWrongUses, CM18_ATrainerJoinsOnceUnderItsNumber) {
  const auto net = make({}, 2);
  auto first = trainer(0, net);
  EXPECT_EQ(*first->net().trainer(), 0U);
  SharedModule<Layers> other = handle_at("t1", net);
  EXPECT_FALSE(other.trainer()) << "a handle that was sent has not joined";
  EXPECT_THAT(other.try_join(2).error().text(), HasSubstr("numbered from 0"));
  EXPECT_THAT(other.try_join(0).error().text(), HasSubstr("trainer 0 is at 't0'"));
  EXPECT_EQ(first->net().try_join(1).error().code(), Errc::bad_arguments);
  other.join(1);
  first.reset();
  cluster_.run_until_idle();
  EXPECT_THAT(handle_at("t0", net).try_join(0).error().text(), HasSubstr("has left or is lost"));
  EXPECT_EQ(SharedModule<Layers>().try_join(0).error().code(), Errc::bad_arguments);
}

TEST_P(SharedWrongUses, CM18_ATrainerThatHasJustLeftDoesNotJoinAgain) {
  const auto net = make({.mode = ConsistencyMode::sync}, 2);
  const auto stays = trainer(0, net);
  SharedModule<Layers> leaves = handle_at("t1", net);
  leaves.join(1);
  leaves.leave();
  const Error refused = leaves.try_join(1).error();  // the owner may not know yet that the trainer has left
  EXPECT_EQ(refused.code(), Errc::bad_arguments);
  EXPECT_THAT(refused.text(), AllOf(HasSubstr("trainer 1 "), HasSubstr("at 't1'"),
                                    HasSubstr("one that has left or is lost cannot come back")));
  EXPECT_FALSE(leaves.trainer());
  stays->compute(1);
  EXPECT_EQ(stays->step(1).get().contributions, 1U) << "the round waits for no trainer that has left";
  EXPECT_EQ(net.status().gone, (std::vector<nn::TrainerNumber>{{1}}));
}

TEST_P(SharedWrongUses, CM15_TheMakerGivesUpATrainerThatNeverJoined) {
  const auto net = make({.mode = ConsistencyMode::sync}, 2);
  const auto it = trainer(0, net);
  it->compute(1);
  Future<nn::StepResult> step = it->step(1);
  cluster_.run_until_idle();
  EXPECT_FALSE(step.ready()) << "trainer 1 is expected";
  SharedModule<Layers> seat = net;
  seat.join(1);
  seat.leave();
  EXPECT_EQ(step.get().contributions, 1U);
  cluster_.run_until_idle();
  EXPECT_THAT(handle_at("t1", net).try_join(1).error().text(), HasSubstr("has left or is lost"));
}

TEST_P(SharedWrongUses, CM4_AStepIsThatOfTheTrainerWhoseContextItIs) {
  const auto net = make({.mode = ConsistencyMode::versioned}, 2);
  const auto first = trainer(0, net);
  SharedModule<Layers> second = handle_at("t0", net);
  second.join(1);
  first->compute(1);
  const auto refused = first->act([&] { return second.try_step(first->context(), 1); });
  EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  EXPECT_THAT(refused.error().text(), HasSubstr("belongs to trainer 0, not to trainer 1"));
  EXPECT_TRUE(first->step(1).result()) << "the context stayed open";
  expect_replay(net);
}

TEST_P(SharedWrongUses, OnlyATrainerInAContextReadsAndSteps) {
  const auto net = make({}, 1);
  EXPECT_THAT(net.try_rpc_sync<&Layers::forward>(input_of(1)).error().text(), HasSubstr("join(number)"));
  const auto it = trainer(0, net);
  EXPECT_EQ(it->net().try_rpc_sync<&Layers::forward>(input_of(1)).error().code(), Errc::unknown_context);
  it->begin();
  EXPECT_EQ(net.try_step(it->context(), 1).error().code(), Errc::bad_arguments) << "not this handle";
  EXPECT_THAT(it->step(1).result().error().text(), HasSubstr("call context.backward"));
  EXPECT_TRUE(it->forward(1).result());
  const at::Tensor other = at::full({1}, 1.0).requires_grad_();
  it->act([&] { it->context().backward({other.sum()}); });
  EXPECT_THAT(it->step(1).result().error().text(), HasSubstr("no parameter of the shared module has a gradient"));
  it->backward(it->forward(1).get(), 1).value();
  EXPECT_EQ(it->step(1).get().version.value, 1U) << "the context stayed open";
  EXPECT_THAT(it->step(1).result().error().text(), HasSubstr("has made its step"));
  EXPECT_THAT(it->forward(1).result().error().text(), HasSubstr("has stepped"));
}

TEST_P(SharedWrongUses, CM27_NoOptimizerStepsTheParametersOfASharedModule) {
  for (const ConsistencyMode mode : {ConsistencyMode::locked, ConsistencyMode::versioned, ConsistencyMode::sync}) {
    const SharedModule<Layers> net(cluster_["maker"], "ps", {.consistency = {.mode = mode}}, kSeed);
    const auto it = trainer(0, net);
    std::vector<RRef<at::Tensor>> parameters;
    for (const nn::NamedReference& one : it->net().named_parameters()) parameters.push_back(one.tensor);
    const auto made = optim::DistributedOptimizer::try_make(cluster_["t0"], {{parameters, optim::SGD{.lr = 0.1}}});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), Errc::bad_arguments);
    EXPECT_THAT(made.error().text(), HasSubstr("net.step(context, batch)"));
    it->compute(1);
    EXPECT_EQ(it->step(1).get().version.value, 1U);
  }
}

TEST_P(SharedWrongUses, CM28_AStepOfAnOpenRoundSaysWhichTrainersAreMissing) {
  const SharedModule<Layers> net(cluster_["maker"], "ps",
                                 {.consistency = {.mode = ConsistencyMode::sync}, .trainers = 3}, kSeed);
  auto first = trainer(0, net), second = trainer(1, net);
  const auto step_of = [](ByHandTrainer& it) {
    it.compute(1);
    return it.act([&] { return it.net().with({.timeout = std::chrono::seconds(5)}).step_async(it.context(), 1); });
  };
  const Error one = step_of(*first).result().error();
  EXPECT_EQ(one.code(), Errc::timeout);
  EXPECT_THAT(one.text(),
              HasSubstr("the round of version 0 waits for trainer 1 at 't1', trainer 2, which has not joined"));
  const Error other = step_of(*second).result().error();
  EXPECT_THAT(other.text(), HasSubstr("waits for trainer 2, which has not joined"));
  first.reset();
  second.reset();
  EXPECT_EQ(cluster_["ps"].stop().served_calls, 0U) << "no caller waits any more";
}

TEST_P(SharedWrongUses, CM4_AStepWaitsForNoCall) {
  for (const ConsistencyMode mode : {ConsistencyMode::locked, ConsistencyMode::versioned}) {
    const SharedModule<Layers> net(cluster_["maker"], "ps", {.consistency = {.mode = mode}}, kSeed);
    const auto it = trainer(0, net);
    it->compute(1);
    Future<at::Tensor> runs = it->act([&] { return it->net().rpc_async<&Layers::forward_at_gate>(input_of(1)); });
    cluster_.run_until_idle();
    EXPECT_THAT(it->step(1).result().error().text(), HasSubstr("1 calls of context"));
    open_gate();
    EXPECT_TRUE(runs.result());
    EXPECT_TRUE(it->forward(1).result()) << "the context stayed open";
    EXPECT_TRUE(it->step(1).result());
  }
}

TEST_P(SharedWrongUses, CM21_AGradientThatDoesNotFitIsRefusedBeforeItIsDelivered) {
  const SharedModule<Layers> net(cluster_["maker"], "ps", {.algorithm = optim::Adam{.lr = 0.1}}, kSeed);
  const auto it = trainer(0, net);
  it->begin();
  const at::Tensor rows = it->act([&] { return it->net().rpc_sync<&Layers::look_up>(at::tensor({1, 2})); });
  it->act([&] { it->context().backward({rows.sum()}); });
  EXPECT_EQ(it->step(1).result().error().code(), Errc::unsupported) << "Adam takes no sparse gradient";
  EXPECT_EQ(net.status().version.value, 0U);
  EXPECT_EQ(net.status().open_contexts, 1U);
  EXPECT_TRUE(it->forward(1).result()) << "the context reads on";
}

TEST_P(SharedWrongUses, CM20_ADoorLetsInTheCallsOfItsReaderOnly) {
  const auto net = make({.mode = ConsistencyMode::versioned}, 1);
  const auto first = trainer(0, net);
  ByHandTrainer beside(cluster_["t0"], net);  // another context of the same worker
  first->begin();
  beside.begin();
  const auto reading_of = [](ByHandTrainer& it) { return it.act([&] { return Opened(it.net()).read().get(); }); };
  const auto call = [](ByHandTrainer& it, const nn::Reading& reading) {
    return it.act([&] {
      return nn::detail::ReadModule<Layers>(reading.module, true, {}).try_rpc_sync<&Layers::forward>(input_of(1));
    });
  };
  const nn::Reading its = reading_of(*first);
  EXPECT_TRUE(call(*first, its));
  EXPECT_THAT(call(beside, its).error().text(), HasSubstr("reads this version of the shared module, not"));
  first->backward(first->forward(1).get(), 1).value();
  first->step(1).get();
  EXPECT_THAT(call(*first, its).error().text(), HasSubstr("is not read any more"));
  first->end();
  EXPECT_EQ(call(*first, its).error().code(), Errc::bad_arguments) << "outside of every context";
  const auto evaluation = net.evaluation();
  EXPECT_TRUE(evaluation.forward(input_of(1)).defined());
}

TEST_P(SharedWrongUses, CM24_AStepThatCannotBeLoggedIsNotMade) {
  const auto net = make({.mode = ConsistencyMode::versioned}, 1);
  const auto it = trainer(0, net);
  it->compute(1);
  const Tensors before = parameters_of(net.state_dict());
  Result<nn::StepResult> refused = nn::StepResult{};
  {
    const FileLimit full(std::filesystem::file_size(log_path()));
    refused = it->step(1).result();
  }
  EXPECT_EQ(refused.error().code(), Errc::io_error);
  EXPECT_EQ(net.status().version.value, 0U);
  EXPECT_TRUE(same(parameters_of(net.state_dict()), before));
  it->end();
  it->compute(2);
  EXPECT_THAT(it->step(2).result().error().text(),
              AllOf(HasSubstr(std::generic_category().message(EFBIG) + " at step 1"), HasSubstr("any more")))
      << "the file may end with a part of a line";
}

class SharedFailures : public SharedCluster,
                       public ::testing::TestWithParam<std::tuple<ConsistencyMode, bool, std::uint64_t>> {
 protected:
  SharedFailures() : SharedCluster(std::get<2>(GetParam())) {}
  static ConsistencyMode mode() { return std::get<0>(GetParam()); }
  static bool has_log() { return std::get<1>(GetParam()); }
  SharedModule<Layers> make_stumbling() {
    return {cluster_["maker"],
            "ps",
            {.consistency = {.mode = mode()},
             .algorithm = optim::Custom{.name = "stumbling", .lr = 0.125},
             .step_log = has_log() ? log_path() : std::string()},
            kSeed};
  }
  Result<nn::StepResult> step(ByHandTrainer& it, std::uint64_t batch) {
    it.compute(batch);
    const Result<nn::StepResult> done = it.step(batch).result();
    it.end();
    cluster_.run_until_idle();
    return done;
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, SharedFailures,
                         ::testing::Combine(::testing::Values(ConsistencyMode::locked, ConsistencyMode::versioned,
                                                              ConsistencyMode::sync),
                                            ::testing::Bool(), ::testing::Range<std::uint64_t>(1, 3)));

TEST_P(SharedFailures, CM24_AfterAStepThatFailedInTheMiddleNoneIsMadeUntilAStateIsLoaded) {
  const SharedModule<Layers> net = make_stumbling();
  const auto it = trainer(0, net);
  EXPECT_EQ(step(*it, 1).value().version.value, 1U);
  const nn::StateDict state = net.state_dict();
  const wire::Bytes optimizer = net.save_optimizer();
  set_stumbling(true);
  const Error failed = step(*it, 2).error();
  set_stumbling(false);
  EXPECT_EQ(failed.code(), Errc::remote_exception);
  EXPECT_THAT(failed.text(), HasSubstr("the floor was wet"));
  EXPECT_THAT(step(*it, 3).error().text(), HasSubstr("failed half-way: load a saved state and its parameters first"));
  EXPECT_EQ(net.status().version.value, 1U);
  net.load_state_dict(state);
  net.load_optimizer(optimizer);
  Result<nn::StepResult> again = step(*it, 4);
  if (has_log()) {
    EXPECT_EQ(again.error().code(), Errc::remote_exception);
    EXPECT_THAT(again.error().text(), AllOf(HasSubstr("step 2 failed after its line was written ("),
                                            HasSubstr("the floor was wet"), HasSubstr("with another log")));
    EXPECT_EQ(net.status().version.value, 1U);
    EXPECT_TRUE(same(parameters_of(net.state_dict()), parameters_of(state)));
    return;
  }
  EXPECT_EQ(again.value().version.value, 2U);
  Tensors expected;
  for (const at::Tensor& one : parameters_of(state)) expected.push_back(one.detach().clone().requires_grad_());
  const Tensors gradients = gradients_at(expected, 4);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i].sub_(gradients[i], 0.125);
  EXPECT_TRUE(same(parameters_of(net.state_dict()), expected));
}

TEST_P(SharedWrongUses, WhatCannotBeSharedIsRefused) {
  const auto refused = [&](const nn::SharedOptions& options, int seed) {
    return SharedModule<Layers>(cluster_["maker"], "ps", options, seed).created().result().error();
  };
  EXPECT_THAT(refused({}, -1).message(), HasSubstr("no seed is negative"));
  EXPECT_EQ(refused({.trainers = 0}, 1).code(), Errc::invalid_config);
  EXPECT_EQ(refused({.consistency = {.quorum = 1}}, 1).code(), Errc::invalid_config);
  EXPECT_EQ(refused({.algorithm = optim::SGD{.lr = -1}}, 1).code(), Errc::bad_arguments);
  EXPECT_THAT(refused({.algorithm = optim::LBFGS{}}, 1).text(), HasSubstr("LBFGS evaluates the loss several times"));
  EXPECT_EQ(refused({.step_log = folder_ / "no" + "/log"}, 1).code(), Errc::io_error);
  EXPECT_EQ(SharedModule<Layers>::try_make(cluster_["maker"], "ps", {}, 1.5).error().code(), Errc::unknown_function);
  const Opened net(make({.mode = ConsistencyMode::locked}, 1));
  ByHandTrainer it(cluster_["maker"], net);
  it.net().join(0);
  it.begin();
  const nn::Reading its = it.act([&] { return Opened(it.net()).read().get(); });
  auto again = cluster_["maker"].try_remote(nn::kShareModule, "ps", its.module, nn::SharedOptions{});
  EXPECT_THAT(again.value().created().result().error().text(), HasSubstr("is shared already"));
  EXPECT_TRUE(it.forward(1).result()) << "its trainers go on";
  const SharedModule<Keeping> keeping(cluster_["maker"], "ps", {}, at::full({2}, 1.0));
  EXPECT_EQ(keeping.try_evaluation().error().code(), Errc::unsupported);
}

}  // namespace
}  // namespace caftan::test::shared_wrong_uses_test
