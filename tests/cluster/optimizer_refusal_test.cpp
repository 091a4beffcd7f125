// What an optimizer refuses, and the errors that it gives; the loss of an owner.
#include "optimizer_roles.hpp"

namespace caftan::test::optimizer_refusal_test {
namespace {

using autograd::Context;
using optim::Adam;
using optim::DistributedOptimizer;
using optim::SGD;
using optim::StepOptions;
using ::testing::HasSubstr;

class Refusals : public OptimizerCluster {
 protected:
  Error refusal(const Parameters& parameters, const optim::Algorithm& algorithm = SGD{},
                const StepOptions& options = {}) {
    const auto made = DistributedOptimizer::try_make(here(), {{parameters, algorithm}}, options);
    return made ? Error() : made.error();
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Refusals, ::testing::Range<std::uint64_t>(1, 11));

// ---- making one

TEST_P(Refusals, TheSameParameterTwiceIsFoundAlsoThroughTwoReferences) {
  const Parameters parameters = layers_[0].rpc_sync<&Layer::parameters>();
  const Error same = refusal({parameters[0], parameters[1], parameters[0]});
  EXPECT_EQ(same.code(), Errc::bad_arguments);
  EXPECT_THAT(same.text(), HasSubstr("parameter 2 is the same reference as parameter 0"));
  const RRef<at::Tensor> again = layers_[0].rpc_sync<&Layer::weight_again>();
  ASSERT_NE(again.id(), parameters[0].id());
  const Error hidden = refusal({parameters[0], layers_[1].rpc_sync<&Layer::parameters>()[0], again});
  EXPECT_EQ(hidden.code(), Errc::bad_arguments);
  EXPECT_EQ(hidden.worker(), "worker1");
  EXPECT_THAT(hidden.text(), HasSubstr("is the same tensor as parameter 0"));
  EXPECT_THAT(hidden.text(), HasSubstr("which are 0 2 of the list"));
}

TEST_P(Refusals, WhatIsNoParameterIsNamed) {
  const Parameters good = layers_[0].rpc_sync<&Layer::parameters>();
  EXPECT_EQ(refusal({}).code(), Errc::bad_arguments);
  EXPECT_THAT(refusal({good[0], RRef<at::Tensor>()}).text(), HasSubstr("parameter 1 is an empty RRef"));
  const Error constant = refusal({good[0], here().remote<&make_constant>("worker1")});
  EXPECT_EQ(constant.code(), Errc::bad_arguments);
  EXPECT_EQ(constant.worker(), "worker1");
  EXPECT_THAT(constant.text(), HasSubstr("needs no gradient"));
  const RRef<at::Tensor> never = layers_[0].remote<&Layer::forward>(at::ones({1, 7}));
  EXPECT_EQ(refusal({never}).code(), Errc::remote_exception) << "why it will never be there";
}

TEST_P(Refusals, OptionsOutOfRangeAreRefusedBeforeAnythingIsSent) {
  const Parameters good = layers_[0].rpc_sync<&Layer::parameters>();
  EXPECT_EQ(refusal(good, SGD{.lr = -1}).code(), Errc::bad_arguments);
  EXPECT_EQ(refusal(good, SGD{}, {.clip_norm = -1}).code(), Errc::bad_arguments);
  EXPECT_EQ(refusal(good, SGD{}, {.clip_value = std::nan("")}).code(), Errc::bad_arguments);
}

TEST_P(Refusals, B8_ClipValueOfAComplexParameterIsRefusedWhenTheOptimizerIsMade) {
  const Parameters complex{here().remote<&make_complex>("worker1")};
  const auto made = DistributedOptimizer::try_make(here(), {{complex, SGD{}}}, {.clip_value = 1});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::bad_arguments);
  EXPECT_NE(made.error().text().find("parameter 0 is complex: clip_value"), std::string::npos);
  EXPECT_TRUE(DistributedOptimizer::try_make(here(), {{complex, SGD{}}}));
}

TEST_P(Refusals, OP13_NamesAreForAllParametersAndEachIsOne) {
  const Parameters p = layers_[0].rpc_sync<&Layer::parameters>();
  const Parameters q = layers_[1].rpc_sync<&Layer::parameters>();
  const auto refused = [&](const std::vector<optim::RemoteParameterGroup>& groups) {
    return DistributedOptimizer::try_make(here(), groups).error().text();
  };
  EXPECT_THAT(refused({{p, SGD{}, {"w"}}}), HasSubstr("group 0 has 1 names for 2 parameters"));
  EXPECT_THAT(refused({{p, SGD{}, {"w", "b"}}, {q, SGD{}}}), HasSubstr("group 1 has 0 names for 2 parameters"));
  EXPECT_THAT(refused({{p, SGD{}, {"w", "b"}}, {q, SGD{}, {"v", "w"}}}), HasSubstr("two parameters have the name w"));
  DistributedOptimizer optimizer(here(), {{p, SGD{}, {"w", "b"}}});
  EXPECT_THAT(optimizer.try_add_param_group({q, SGD{}}).error().text(), HasSubstr("have no names"));
  EXPECT_THAT(optimizer.try_add_param_group({q, SGD{}, {"v", "b"}}).error().text(),
              HasSubstr("a parameter at worker1 has the name b already"));
  optimizer.add_param_group({q, SGD{}, {"v", "c"}});
  DistributedOptimizer unnamed(here(), {{p, SGD{}}});
  EXPECT_THAT(unnamed.try_add_param_group({q, SGD{}, {"v", "c"}}).error().text(),
              HasSubstr("those of the optimizer have none"));
}

TEST_P(Refusals, NothingIsLeftOfAnOptimizerThatOneOwnerRefused) {
  const Parameters good = layers_[0].rpc_sync<&Layer::parameters>();
  cluster_.run_until_idle();
  const auto before = cluster_[1].counters().owner_rrefs;
  {
    RRef<at::Tensor> constant = here().remote<&make_constant>("worker2");
    EXPECT_EQ(refusal({good[0], constant}).code(), Errc::bad_arguments);
  }
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, before);
}

TEST_P(Refusals, OP11_AGroupThatOneOwnerRefusesIsAddedNowhere) {
  const Parameters first = layers_[0].rpc_sync<&Layer::parameters>();
  const Parameters second = layers_[1].rpc_sync<&Layer::parameters>();
  DistributedOptimizer optimizer(here(), {first[0]}, SGD{.lr = 0.5});
  cluster_.run_until_idle();
  const auto before = cluster_[2].counters().owner_rrefs;
  const Error twice = optimizer.try_add_param_group({{first[1], second[0], first[0]}, SGD{}}).error();
  EXPECT_EQ(twice.code(), Errc::bad_arguments);
  EXPECT_EQ(twice.worker(), "worker1");
  EXPECT_THAT(twice.text(), HasSubstr("is the same tensor as parameter 0"));
  EXPECT_EQ(optimizer.try_add_param_group({{}, SGD{}}).error().code(), Errc::bad_arguments);
  EXPECT_EQ(optimizer.try_add_param_group({{first[1]}, SGD{.lr = -1}}).error().code(), Errc::bad_arguments);
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[2].counters().owner_rrefs, before) << "the optimizer at the new owner has ended";
  EXPECT_EQ(optimizer.groups(), 1U);
  train(optimizer, 0);
  EXPECT_EQ(optimizer.last_report().owners.size(), 1U);
  EXPECT_EQ(optimizer.last_report().owners[0].outcome->stepped, 1U);
  optimizer.add_param_group({{first[1], second[0]}, SGD{}});
  train(optimizer, 1);
  EXPECT_EQ(optimizer.last_report().owners.size(), 2U);
  EXPECT_EQ(optimizer.last_report().owners[0].outcome->stepped, 2U);
}

// ---- stepping

TEST_P(Refusals, AContextWithoutGradientsIsNamedWithTheWayOut) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  const auto before = values();
  Context context(here());
  (void)forward(make_input(0));
  const Error error = optimizer.try_step(context).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr(to_string(context.id())));
  EXPECT_THAT(error.text(), HasSubstr("call context.backward"));
  EXPECT_TRUE(same_values(values(), before));
}

TEST_P(Refusals, AContextWithGradientsOfOtherParametersStepsNothing) {
  DistributedOptimizer optimizer(here(), layers_[1].rpc_sync<&Layer::parameters>(), SGD{.lr = 1});
  Context context(here());
  context.backward({layers_[0].rpc_sync<&Layer::forward>(make_input(0)).sum()});
  const Error error = optimizer.try_step(context).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("no parameter of this optimizer has a gradient"));
}

TEST_P(Refusals, AContextWhoseLastPassFailedStepsNothing) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  Context context(here());
  const at::Tensor y = forward(make_input(0));
  autograd::BackwardOptions keep;
  keep.retain_graph = true;
  context.backward({y.sum()}, keep);
  optimizer.step(context);
  const auto before = values();
  ASSERT_FALSE(context.try_backward({y.sum()})) << "the graph is from before the step";
  const Error error = optimizer.try_step(context).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("failed"));
  EXPECT_TRUE(same_values(values(), before));
}

TEST_P(Refusals, AReleasedContextStepsNothing) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  const auto before = values();
  std::optional<Context> context(std::in_place, here());
  context->backward({forward(make_input(0)).sum()});
  const autograd::ContextView view = *context;
  context.reset();
  cluster_.run_until_idle();
  EXPECT_EQ(optimizer.try_step(view).error().code(), Errc::context_released);
  EXPECT_TRUE(same_values(values(), before));
}

TEST_P(Refusals, AStepUnderWayHoldsItsContext) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1}, {.clip_norm = 1});
  const auto before = values();
  Future<optim::StepReport> stepped;
  {
    Context context(here());
    context.backward({forward(make_input(0)).sum()});
    stepped = optimizer.step_async(context);
  }
  EXPECT_TRUE(std::move(stepped).result());
  EXPECT_FALSE(same_values(values(), before));
  cluster_.run_until_idle();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(cluster_[i].autograd_contexts().empty());
}

TEST_P(Refusals, ALearningRateOutOfRangeStepsNothing) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  optimizer.set_lr(0, -1);
  const auto before = values();
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  EXPECT_EQ(optimizer.try_step(context).error().code(), Errc::bad_arguments);
  EXPECT_TRUE(same_values(values(), before));
}

TEST_P(Refusals, AGroupThatIsNotThereIsNamed) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  EXPECT_THROW((void)optimizer.lr(1), RpcException);
  EXPECT_THROW(optimizer.set_lr(5, 0.1), RpcException);
  EXPECT_EQ(optimizer.lr(0), 1);
}

TEST_P(Refusals, AnOptimizerThatWasMovedAwayStepsNothing) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  DistributedOptimizer moved = std::move(optimizer);
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(optimizer.try_step(context).error().code(), Errc::bad_arguments);
  EXPECT_EQ(optimizer.try_save().error().code(), Errc::bad_arguments);
  EXPECT_THROW((void)optimizer.lr(0), RpcException);
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(moved.try_step(autograd::ContextView(nullptr)).error().code(), Errc::bad_arguments);
  EXPECT_TRUE(moved.try_step(context));
}

// ---- states

TEST_P(Refusals, OP4_ASavedStateThatDoesNotFitChangesNoOwner) {
  const Parameters parameters = all_parameters();
  DistributedOptimizer optimizer(here(), parameters, Adam{});
  train(optimizer, 0);
  const wire::Bytes state = optimizer.save();
  const auto refused = [&](wire::ByteView bytes) {
    const Result<void> loaded = optimizer.try_load(bytes);
    return loaded ? Errc::ok : loaded.error().code();
  };
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{11}, std::size_t{12}, state.size() / 2, state.size() - 1}) {
    EXPECT_EQ(refused(wire::ByteView(state).first(size)), Errc::malformed_payload) << size;
  }
  wire::Bytes newer = state;
  newer[8] = std::byte{9};
  EXPECT_EQ(refused(newer), Errc::protocol_mismatch);
  DistributedOptimizer fewer(here(), Parameters(parameters.begin(), parameters.begin() + 2), Adam{});
  EXPECT_EQ(fewer.try_load(state).error().code(), Errc::bad_arguments);
  DistributedOptimizer other(here(), parameters, SGD{});
  const Error error = other.try_load(state).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("stepped by Adam, here by SGD"));
  EXPECT_EQ(optimizer.save(), state);
  train(other, 1);
}

// ---- the loss of an owner

TEST_P(Refusals, OP9_ALostOwnerIsPeerDownAndTheOthersReport) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  const auto before = layers_[0].rpc_sync<&Layer::values>();
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  net_.kill("worker2");
  const auto stepped = optimizer.try_step(context);
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().code(), Errc::peer_down);
  const auto report = optimizer.last_report();
  ASSERT_EQ(report.owners.size(), 3U);
  EXPECT_EQ(report.owners[0].outcome->stepped, 2U);
  EXPECT_EQ(report.owners[1].outcome.error().code(), Errc::peer_down);
  EXPECT_EQ(report.owners[2].outcome->stepped, 2U);
  EXPECT_FALSE(same_values(layers_[0].rpc_sync<&Layer::values>(), before));
}

TEST_P(Refusals, OP9_AnOwnerLostBeforeTheSecondPhaseStopsTheStepEverywhere) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1}, {.clip_norm = 1});
  const auto before = layers_[0].rpc_sync<&Layer::values>();
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  net_.kill("worker2");
  const auto stepped = optimizer.try_step(context);
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().code(), Errc::peer_down);
  EXPECT_TRUE(same_values(layers_[0].rpc_sync<&Layer::values>(), before));
  EXPECT_EQ(optimizer.last_report().owners[0].outcome.error().code(), Errc::cancelled);
}

}  // namespace
}  // namespace caftan::test::optimizer_refusal_test
