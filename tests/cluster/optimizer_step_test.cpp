// Steps over three owners: they equal local steps bit for bit, take turns with the methods of the modules, and report
// each owner's reply.
#include <ATen/ops/full.h>

#include <optional>
#include <stdexcept>

#include "caftan/optim/clipping.hpp"
#include "caftan/optim/cyclic_schedules.hpp"
#include "caftan/optim/internal/remote_optimizer.hpp"
#include "heavy_ball.hpp"
#include "optimizer_roles.hpp"

namespace caftan::test::optimizer_step_test {
namespace {

using autograd::Context;
using optim::Adam;
using optim::AdamW;
using optim::Algorithm;
using optim::DistributedOptimizer;
using optim::LocalOptimizer;
using optim::SGD;
using ::testing::HasSubstr;

class Steps : public OptimizerCluster {
 protected:
  /// A pass that reaches layers 0 and 1, with a sparse gradient at the first.
  void backward_with_sparse_gradient(const Context& context) {
    const at::Tensor rows = layers_[0].rpc_sync<&Layer::look_up>(at::tensor({0, 2}, at::kLong));
    const at::Tensor y = layers_[1].rpc_sync<&Layer::forward>(rows.repeat({1, 2}).narrow(1, 0, 4));
    context.backward({y.sum()});
  }
  /// Makes an optimizer of the first layer's parameters at their owner. The test calls it as a step coordinator would.
  RRef<optim::RemoteOptimizer> make_at_owner() {
    optim::OptimizerSpec spec;
    spec.groups.push_back({layers_[0].rpc_sync<&Layer::parameters>(), SGD{.lr = 1}});
    return here().rpc_sync(optim::kMakeOptimizer, "worker1", spec);
  }
  void backward_through_first_layer(const Context& context) {
    context.backward({layers_[0].rpc_sync<&Layer::forward>(make_input(0)).sum()});
  }
  const optim::StepOrder order_{.step = {1}, .lrs = {1.0}};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Steps, ::testing::Range<std::uint64_t>(1, 11));

TEST_P(Steps, Row21_01_EqualLocalOnesBitForBit) {
  const Algorithm algorithms[] = {
      SGD{.lr = 0.05},   SGD{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
      Adam{.lr = 0.02},  Adam{.lr = 0.02, .amsgrad = true, .fused = true},
      AdamW{.lr = 0.02}, optim::Adagrad{.lr = 0.1},
      optim::Adadelta{}, optim::RMSprop{.momentum = 0.9, .centered = true},
      optim::Rprop{},    optim::Adamax{}};
  const Algorithm& algorithm = algorithms[GetParam() % std::size(algorithms)];
  DistributedOptimizer optimizer(here(), all_parameters(), algorithm);
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), algorithm}}).value();
  ASSERT_TRUE(same_values(values(), model.parameters()));
  for (int step = 0; step < 6; ++step) {
    train(optimizer, step);
    ASSERT_TRUE(local.step(model.gradients(step)));
    ASSERT_TRUE(same_values(values(), model.parameters())) << "step " << step;
  }
  EXPECT_EQ(optimizer.last_report().step.value, 6U);
  ASSERT_EQ(optimizer.last_report().owners.size(), 3U);
  EXPECT_EQ(optimizer.last_report().owners[0].worker, "worker1");
  EXPECT_EQ(optimizer.last_report().owners[0].outcome->stepped, 2U);
}

TEST_P(Steps, Row21_02_AParameterWithoutGradientIsLeftAlone) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  const auto before = values();
  Context context(here());
  context.backward({layers_[0].rpc_sync<&Layer::forward_weight>(make_input(0)).sum()});
  const auto report = optimizer.step(context);
  EXPECT_EQ(report.owners[0].outcome->stepped, 1U);
  EXPECT_EQ(report.owners[1].outcome->stepped, 0U);
  const auto after = values();
  EXPECT_FALSE(at::equal(after[0], before[0]));
  for (std::size_t i = 1; i < after.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i])) << i;
}

TEST_P(Steps, Row21_02_OneOfTwoIsSteppedAsLocallyByEachAlgorithm) {
  const Algorithm algorithms[] = {SGD{.lr = 0.5},   SGD{.lr = 0.1, .momentum = 0.9},
                                  Adam{},           AdamW{},
                                  optim::Adagrad{}, optim::Adadelta{},
                                  optim::RMSprop{}, optim::Rprop{},
                                  optim::Adamax{}};
  const Algorithm& algorithm = algorithms[GetParam() % std::size(algorithms)];
  DistributedOptimizer optimizer(here(), layers_[0].rpc_sync<&Layer::parameters>(), algorithm);
  const Layer layer(1);
  LocalOptimizer local = LocalOptimizer::make({{layer.tensors(), algorithm}}).value();
  for (int step = 0; step < 3; ++step) {
    Context context(here());
    context.backward({layers_[0].rpc_sync<&Layer::forward_weight>(make_input(step)).sum()});
    EXPECT_EQ(optimizer.step(context).owners[0].outcome->stepped, 1U);
    layer.forward_weight(make_input(step)).sum().backward();
    const at::Tensor weight = layer.tensors()[0];
    ASSERT_TRUE(local.step(std::vector<at::Tensor>{weight.grad(), at::Tensor()}));
    weight.mutable_grad() = at::Tensor();
    const auto stepped = layers_[0].rpc_sync<&Layer::values>();
    EXPECT_TRUE(at::equal(stepped[0], weight.detach())) << "step " << step;
    EXPECT_TRUE(at::equal(stepped[1], Layer(1).values()[1])) << "it has no gradient";
  }
}

TEST_P(Steps, RowX30_AGradientOfAnEarlierContextIsNotSteppedAgain) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  train(optimizer, 0);
  const auto before = values();
  Context context(here());
  context.backward({layers_[0].rpc_sync<&Layer::forward_weight>(make_input(0)).sum()});
  optimizer.step(context);
  EXPECT_TRUE(at::equal(values()[1], before[1]));
}

TEST_P(Steps, Row21_03_AnOwnersRefusalArrivesWithItsTextAndTheOthersAreHeard) {
  DistributedOptimizer optimizer(here(), all_parameters(), Adam{});
  const auto before = values();
  Context context(here());
  backward_with_sparse_gradient(context);
  const auto stepped = optimizer.try_step(context);
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().code(), Errc::unsupported);
  EXPECT_EQ(stepped.error().worker(), "worker1");
  EXPECT_THAT(stepped.error().text(), HasSubstr("does not support sparse gradients"));
  EXPECT_THAT(stepped.error().text(), HasSubstr("worker2 has stepped 2 parameters"));
  const auto after = values();
  EXPECT_TRUE(at::equal(after[0], before[0]));
  EXPECT_FALSE(at::equal(after[2], before[2])) << "one phase: the others have stepped";
  EXPECT_FALSE(optimizer.last_report().owners[0].outcome);
  EXPECT_TRUE(optimizer.last_report().owners[1].outcome);
}

TEST_P(Steps, OP7_AStepThatComesTwiceRunsOnceAndIsAnsweredTwice) {
  const RRef<optim::RemoteOptimizer> owner = make_at_owner();
  const Context context(here());
  backward_through_first_layer(context);
  EXPECT_EQ(owner.rpc_sync<&optim::RemoteOptimizer::step>(order_).stepped, 2U);
  const auto after = layers_[0].rpc_sync<&Layer::values>();
  EXPECT_EQ(owner.rpc_sync<&optim::RemoteOptimizer::step>(order_).stepped, 2U);
  EXPECT_TRUE(same_values(layers_[0].rpc_sync<&Layer::values>(), after));
}

TEST_P(Steps, OP8_AnOwnerDoesNotCommitWhatWasGivenUp) {
  const RRef<optim::RemoteOptimizer> owner = make_at_owner();
  const auto before = layers_[0].rpc_sync<&Layer::values>();
  const Context context(here());
  backward_through_first_layer(context);
  EXPECT_EQ(owner.rpc_sync<&optim::RemoteOptimizer::prepare>(order_).gradients, 2U);
  owner.rpc_sync<&optim::RemoteOptimizer::abort>(order_.step);
  const auto committed = owner.try_rpc_sync<&optim::RemoteOptimizer::commit>(order_.step, 1.0);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code(), Errc::bad_arguments) << committed.error().message();
  EXPECT_TRUE(same_values(layers_[0].rpc_sync<&Layer::values>(), before));
}

// ---- clipping

TEST_P(Steps, OP8_TheNormIsTakenOverAllOwnersAndClippedAsLocally) {
  DistributedOptimizer optimizer(here(), all_parameters(), Adam{.lr = 0.02}, {.clip_norm = 0.5, .clip_value = 0.3});
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), Adam{.lr = 0.02}}}).value();
  for (int step = 0; step < 4; ++step) {
    train(optimizer, step);
    const auto limited = optim::clipped_by_value(model.gradients(step), 0.3);
    // Adds the squares owner by owner, in the order in which the distributed optimizer adds them.
    double squared = 0;
    for (std::size_t i = 0; i < limited.size(); i += 2) {
      squared += optim::squared_norm(std::vector<at::Tensor>{limited[i], limited[i + 1]});
    }
    const double scale = optim::clip_scale(squared, 0.5);
    EXPECT_EQ(optimizer.last_report().norm, std::sqrt(squared));
    EXPECT_EQ(optimizer.last_report().scale, scale);
    ASSERT_TRUE(local.step(optim::scaled(limited, scale)));
    ASSERT_TRUE(same_values(values(), model.parameters())) << "step " << step;
  }
}

TEST_P(Steps, OP8_WithTwoPhasesARefusalLeavesEveryOwnerUnchanged) {
  DistributedOptimizer optimizer(here(), all_parameters(), Adam{}, {.clip_norm = 1});
  const auto before = values();
  {
    Context context(here());
    backward_with_sparse_gradient(context);
    const auto stepped = optimizer.try_step(context);
    ASSERT_FALSE(stepped);
    EXPECT_EQ(stepped.error().code(), Errc::unsupported);
    EXPECT_THAT(stepped.error().text(), HasSubstr("does not support sparse gradients"));
  }
  EXPECT_TRUE(same_values(values(), before));
  train(optimizer, 1);
  EXPECT_FALSE(same_values(values(), before)) << "the next step goes on";
}

TEST_P(Steps, OP8_ANormThatIsNotFiniteStepsNothing) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1}, {.clip_norm = 1});
  DistributedOptimizer careless(here(), all_parameters(), SGD{.lr = 1}, {.clip_norm = 1, .error_if_nonfinite = false});
  const auto before = values();
  Context context(here());
  const at::Tensor infinite = at::full({2, 4}, std::numeric_limits<double>::infinity(), at::kFloat);
  context.backward({layers_[0].rpc_sync<&Layer::forward_weight>(infinite).sum()});
  const auto stepped = optimizer.try_step(context);
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().code(), Errc::bad_arguments);
  EXPECT_THAT(stepped.error().text(), HasSubstr("the norm of all gradients is inf"));
  EXPECT_TRUE(same_values(values(), before));
  EXPECT_TRUE(careless.try_step(context));
  EXPECT_FALSE(same_values(values(), before));
}

// ---- order of steps

TEST_P(Steps, AStepWaitsForTheTurnOfTheModuleWhoseParametersTheyAre) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  const auto before = values();
  Future<bool> held = layers_[1].rpc_async<&Layer::hold>();
  cluster_.run_until_idle();
  Future<optim::StepReport> stepped = optimizer.step_async(context);
  cluster_.run_until_idle();
  EXPECT_FALSE(stepped.ready()) << "worker2's layer keeps its turn";
  EXPECT_FALSE(at::equal(layers_[0].rpc_sync<&Layer::values>()[0], before[0])) << "the others do not wait for it";
  gate.open();
  EXPECT_FALSE(held.get()) << "the weight did not change while the method ran";
  EXPECT_TRUE(std::move(stepped).result());
  EXPECT_FALSE(at::equal(values()[2], before[2]));
}

TEST_P(Steps, RowX15_StepsOfTwoOptimizersOnTheSameParametersDoNotOverlap) {
  const Parameters parameters = all_parameters();
  DistributedOptimizer one(here(), parameters, SGD{.lr = 0.5});
  DistributedOptimizer two(here(), parameters, SGD{.lr = 0.5});
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), SGD{.lr = 0.5}}}).value();
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  Future<optim::StepReport> first = one.step_async(context);
  Future<optim::StepReport> second = two.step_async(context);
  Future<optim::StepReport> third = one.step_async(context);
  EXPECT_TRUE(std::move(first).result());
  EXPECT_TRUE(std::move(second).result());
  EXPECT_TRUE(std::move(third).result());
  const auto gradients = model.gradients(0);
  ASSERT_TRUE(local.step(gradients));
  ASSERT_TRUE(local.step(gradients));
  ASSERT_TRUE(local.step(gradients));
  EXPECT_TRUE(same_values(values(), model.parameters()));
}

TEST_P(Steps, OP6_BackwardOverAGraphFromBeforeTheStepIsAnError) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 1});
  Context context(here());
  const at::Tensor y = forward(make_input(0));
  autograd::BackwardOptions keep;
  keep.retain_graph = true;
  context.backward({y.sum()}, keep);
  optimizer.step(context);
  const auto again = context.try_backward({y.sum()});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::backward_failed);
  EXPECT_THAT(again.error().message(), HasSubstr("modified by an inplace operation"));
  EXPECT_THAT(again.error().message(), HasSubstr("run the forward again"));
}

// ---- groups, schedules, states

TEST_P(Steps, GroupsHaveTheirOwnOptionsAndSchedulesChangeTheirRates) {
  const Parameters all = all_parameters();
  const Parameters weights{all[0], all[2], all[4]};
  const Parameters biases{all[1], all[3], all[5]};
  DistributedOptimizer optimizer(here(), {{weights, SGD{.lr = 0.5}}, {biases, Adam{.lr = 0.25}}});
  optim::StepLR schedule(optimizer, {.step_size = 2, .gamma = 0.5});
  const LocalModel model;
  const auto p = model.parameters();
  LocalOptimizer local =
      LocalOptimizer::make({{{p[0], p[2], p[4]}, SGD{.lr = 0.5}}, {{p[1], p[3], p[5]}, Adam{.lr = 0.25}}}).value();
  optim::StepLR local_schedule(local, {.step_size = 2, .gamma = 0.5});
  for (int step = 0; step < 5; ++step) {
    train(optimizer, step);
    schedule.step();
    const auto g = model.gradients(step);
    ASSERT_TRUE(local.step(std::vector<at::Tensor>{g[0], g[2], g[4], g[1], g[3], g[5]}));
    local_schedule.step();
    ASSERT_TRUE(same_values(values(), p)) << "step " << step;
  }
  EXPECT_EQ(optimizer.lr(0), 0.125);
  EXPECT_EQ(optimizer.lr(1), 0.0625);
}

TEST_P(Steps, OP5_MomentaOfAScheduleReachEveryOwnerAndComeBackFromASavedState) {
  const Parameters all = all_parameters();
  const SGD sgd{.lr = 0.1, .momentum = 0.5};
  // With clip_norm the momenta travel with `prepare`.
  const optim::StepOptions options{.clip_norm = GetParam() % 2 == 0 ? 1e9 : 0};
  const optim::OneCycleLROptions cycle{.max_lr = {0.2}, .total_steps = 8};
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), sgd}}).value();
  optim::OneCycleLR local_schedule(local, cycle);
  wire::Bytes saved;
  optim::ScheduleState saved_schedule;
  {
    DistributedOptimizer optimizer(here(), all, sgd, options);
    optim::OneCycleLR schedule(optimizer, cycle);
    EXPECT_EQ(optimizer.momentum(0), 0.95);
    for (int step = 0; step < 4; ++step) {
      train(optimizer, step);
      schedule.step();
    }
    saved = optimizer.save();
    saved_schedule = schedule.state();
  }
  DistributedOptimizer resumed(here(), all, sgd, options);
  optim::OneCycleLR schedule(resumed, cycle);
  resumed.load(saved);
  ASSERT_TRUE(schedule.load(saved_schedule));
  for (int step = 0; step < 8; ++step) {
    ASSERT_TRUE(local.step(model.gradients(step)));
    local_schedule.step();
    if (step < 4) continue;
    train(resumed, step);
    schedule.step();
    ASSERT_TRUE(same_values(values(), model.parameters())) << "step " << step;
    ASSERT_EQ(resumed.momentum(0), local.momentum(0));
  }
}

TEST_P(Steps, OP4_AMomentumOutOfRangeStepsNothing) {
  DistributedOptimizer optimizer(here(), all_parameters(), SGD{.lr = 0.1, .momentum = 0.5, .nesterov = true});
  EXPECT_EQ(optimizer.momentum(0), 0.5);
  const auto before = values();
  optimizer.set_momentum(0, 0);
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  const Error error = optimizer.try_step(context).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("nesterov needs momentum > 0"));
  EXPECT_TRUE(same_values(values(), before));
  optimizer.set_momentum(0, 0.5);
  optimizer.step(context);
  EXPECT_FALSE(same_values(values(), before));
  DistributedOptimizer without(here(), all_parameters(), optim::Adagrad{});
  EXPECT_EQ(without.momentum(0), std::nullopt);
  EXPECT_THROW((void)without.momentum(1), RpcException);
}

TEST_P(Steps, OP11_AGroupThatComesLaterIsSteppedAtItsOwnersOldAndNew) {
  const Parameters all = all_parameters();
  const Algorithm algorithm = Adam{.lr = 0.25};
  DistributedOptimizer optimizer(here(), {all[0]}, SGD{.lr = 0.5});
  EXPECT_EQ(optimizer.initial_lrs(), std::vector<double>{0.5});
  const LocalModel model;
  const auto p = model.parameters();
  LocalOptimizer local = LocalOptimizer::make({{{p[0]}, SGD{.lr = 0.5}}}).value();
  train(optimizer, 0);
  ASSERT_TRUE(local.step(std::vector<at::Tensor>{model.gradients(0)[0]}));
  const Parameters later(all.begin() + 1, all.end());
  optimizer.add_param_group({later, algorithm});
  ASSERT_TRUE(local.add_param_group({{p.begin() + 1, p.end()}, algorithm}));
  EXPECT_EQ(optimizer.groups(), 2U);
  EXPECT_EQ(optimizer.initial_lrs(), (std::vector<double>{0.5, 0.25}));
  for (int step = 1; step < 5; ++step) {
    if (step == 3) optimizer.set_lr(1, 0.125);
    if (step == 3) local.set_lr(1, 0.125);
    train(optimizer, step);
    ASSERT_TRUE(local.step(model.gradients(step)));
    ASSERT_TRUE(same_values(values(), p)) << "step " << step;
  }
  const wire::Bytes saved = optimizer.save();
  DistributedOptimizer resumed(here(), {{{all[0]}, SGD{.lr = 0.5}}, {later, algorithm}});
  resumed.load(saved);
  EXPECT_EQ(resumed.save(), saved);
}

optim::Custom heavy_ball(const char* name) { return {.name = name, .lr = 0.05, .options = {{"beta", 0.5}}}; }

/// Fails in every step.
class Failing final : public optim::CustomAlgorithm {
 public:
  Result<void> check(const optim::Custom&) const override { return {}; }
  void step(const optim::Custom&, const optim::CustomStep&) const override {
    throw std::runtime_error("the sun shone");
  }
};

Registry make_custom_registry() {
  Registry registry = make_optimizer_registry();
  optim::add_algorithm(registry, "heavy_ball", std::make_shared<optim::HeavyBall>());
  optim::add_algorithm(registry, "failing", std::make_shared<Failing>());
  return registry;
}

class CustomSteps : public OptimizerCluster {
 protected:
  CustomSteps() : OptimizerCluster(make_custom_registry) {}
};
INSTANTIATE_TEST_SUITE_P(Seeds, CustomSteps, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(CustomSteps, ByCodeOfTheOwnersEqualLocalOnesAlsoAfterALoad) {
  const Parameters parameters = all_parameters();
  const LocalModel model;
  optim::Custom with_code = heavy_ball("heavy_ball");
  with_code.code = std::make_shared<optim::HeavyBall>();
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), with_code}}).value();
  wire::Bytes saved;
  {
    DistributedOptimizer optimizer(here(), parameters, heavy_ball("heavy_ball"));
    for (int step = 0; step < 3; ++step) train(optimizer, step);
    saved = optimizer.save();
  }
  DistributedOptimizer resumed(here(), parameters, heavy_ball("heavy_ball"));
  resumed.load(saved);
  for (int step = 0; step < 6; ++step) {
    ASSERT_TRUE(local.step(model.gradients(step)));
    if (step >= 3) train(resumed, step);
  }
  EXPECT_TRUE(same_values(values(), model.parameters()));
}

TEST_P(CustomSteps, Row21_03_WhatTheStepOfAnOwnerThrowsIsTheError) {
  DistributedOptimizer optimizer(here(), all_parameters(), optim::Custom{.name = "failing"});
  Context context(here());
  context.backward({forward(make_input(0)).sum()});
  const Error error = optimizer.try_step(context).error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  EXPECT_THAT(error.text(), HasSubstr("the sun shone"));
}

TEST_P(CustomSteps, AnAlgorithmThatAnOwnerDoesNotHaveIsNamed) {
  const auto made = DistributedOptimizer::try_make(here(), {{all_parameters(), heavy_ball("heavy_bell")}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::bad_arguments);
  EXPECT_THAT(made.error().text(), HasSubstr("heavy_bell is not registered here (registered: failing, heavy_ball)"));
}

TEST_P(Steps, OP5_TrainingGoesOnFromASavedState) {
  const Parameters parameters = all_parameters();
  const Algorithm algorithm = AdamW{.lr = 0.02};
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), algorithm}}).value();
  wire::Bytes saved;
  {
    DistributedOptimizer optimizer(here(), parameters, algorithm);
    for (int step = 0; step < 3; ++step) train(optimizer, step);
    optimizer.set_lr(0, 0.01);
    saved = optimizer.save();
  }
  DistributedOptimizer resumed(here(), parameters, algorithm);
  resumed.load(saved);
  EXPECT_EQ(resumed.lr(0), 0.01);
  for (int step = 0; step < 6; ++step) {
    if (step == 3) local.set_lr(0, 0.01);
    ASSERT_TRUE(local.step(model.gradients(step)));
    if (step >= 3) train(resumed, step);
  }
  EXPECT_TRUE(same_values(values(), model.parameters()));
  EXPECT_EQ(resumed.last_report().step.value, 6U);
}

TEST_P(Steps, B7_OP5_TheBaseOfSchedulesIsPartOfASavedState) {
  const Parameters parameters = all_parameters();
  wire::Bytes before;
  wire::Bytes after;
  {
    DistributedOptimizer optimizer(here(), parameters, SGD{.lr = 1.0});
    before = optimizer.save();
    const optim::LambdaLR warm_up(optimizer, [](std::int64_t) { return 0.125; });
    after = optimizer.save();
  }
  DistributedOptimizer resumed(here(), parameters, SGD{.lr = 3.0});
  resumed.load(after);
  EXPECT_EQ(resumed.lr(0), 0.125);
  EXPECT_EQ(resumed.initial_lrs(), std::vector<double>{1.0});
  EXPECT_EQ(resumed.save(), after);
  EXPECT_EQ(resumed.try_load(wire::ByteView(after).first(after.size() - 1)).error().code(), Errc::malformed_payload);
  EXPECT_EQ(resumed.initial_lrs(), std::vector<double>{1.0});
  resumed.load(before);
  resumed.set_lr(0, 0.5);
  EXPECT_EQ(resumed.initial_lrs(), std::vector<double>{0.5});
}

TEST_P(Steps, OP13_ASavedStateGoesOnAtOtherOwners) {
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), Adam{.lr = 0.02}}}).value();
  wire::Bytes saved;
  {
    DistributedOptimizer optimizer(here(), all_parameters(), Adam{.lr = 0.02});
    for (int step = 0; step < 3; ++step) train(optimizer, step);
    saved = optimizer.save();
  }
  const std::vector<at::Tensor> before = values();
  // The same three layers, with the values of then, each at another worker.
  for (std::size_t i = 0; i < 3; ++i) {
    const auto worker = WorkerId{static_cast<std::uint32_t>((i + GetParam() % 3) % 3)};
    layers_[i] = here().remote<Layer>(worker, static_cast<int>(i) + 1);
    layers_[i].rpc_sync<&Layer::set_values>(std::vector<at::Tensor>{before[2 * i], before[2 * i + 1]});
  }
  const bool local_last = GetParam() % 3 == 1;  // `forward` of the fixture calls the last layer without a call
  DistributedOptimizer moved(here(), all_parameters(), Adam{.lr = 0.5});
  moved.load(saved);
  EXPECT_EQ(moved.lr(0), 0.02);
  for (int step = 0; step < 6; ++step) {
    ASSERT_TRUE(local.step(model.gradients(step)));
    if (step < 3) continue;
    Context context(here());
    at::Tensor y = make_input(step);
    for (std::size_t i = 0; i < 3; ++i) {
      y = local_last && i == 2 ? layers_[2].local_value()->forward(y) : layers_[i].rpc_sync<&Layer::forward>(y);
    }
    context.backward({y.sum()});
    moved.step(context);
    ASSERT_TRUE(same_values(values(), model.parameters())) << "step " << step;
  }
  EXPECT_EQ(moved.last_report().step.value, 6U);
}

TEST_P(Steps, OP13_WithNamesTheListMayHaveAnotherOrder) {
  const Parameters all = all_parameters();
  const std::vector<std::string> names{"a.w", "a.b", "b.w", "b.b", "c.w", "c.b"};
  wire::Bytes saved;
  {
    DistributedOptimizer optimizer(here(), {{all, SGD{.lr = 0.1, .momentum = 0.9}, names}});
    for (int step = 0; step < 2; ++step) train(optimizer, step);
    saved = optimizer.save();
  }
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), SGD{.lr = 0.1, .momentum = 0.9}}}).value();
  DistributedOptimizer turned(here(), {{Parameters(all.rbegin(), all.rend()), SGD{.lr = 0.1, .momentum = 0.9},
                                        std::vector<std::string>(names.rbegin(), names.rend())}});
  turned.load(saved);
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(local.step(model.gradients(step)));
    if (step >= 2) train(turned, step);
  }
  EXPECT_TRUE(same_values(values(), model.parameters()));
}

TEST_P(Steps, OP14_OwnersAtDifferentStepsHaveNoCommonState) {
  DistributedOptimizer optimizer(here(), all_parameters(), Adam{});
  train(optimizer, 0);
  const wire::Bytes saved = optimizer.save();
  {
    Context context(here());
    backward_with_sparse_gradient(context);
    ASSERT_FALSE(optimizer.try_step(context));
  }
  const Error error = optimizer.try_save().error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("worker1 at 1, worker2 at 2, worker0 at 2"));
  EXPECT_THAT(error.text(), HasSubstr("or load an earlier state"));
  optimizer.load(saved);
  EXPECT_EQ(optimizer.save(), saved);
  train(optimizer, 1);
  EXPECT_TRUE(optimizer.try_save());
}

TEST_P(Steps, OP8_AnAtomicStepWithoutClippingIsMadeAtAllOwnersOrAtNone) {
  DistributedOptimizer optimizer(here(), all_parameters(), Adam{.lr = 0.02}, {.atomic = true});
  const LocalModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), Adam{.lr = 0.02}}}).value();
  train(optimizer, 0);
  ASSERT_TRUE(local.step(model.gradients(0)));
  ASSERT_TRUE(same_values(values(), model.parameters()));
  {
    Context context(here());
    backward_with_sparse_gradient(context);
    EXPECT_EQ(optimizer.try_step(context).error().code(), Errc::unsupported);
    EXPECT_TRUE(same_values(values(), model.parameters())) << "no owner has stepped";
    EXPECT_EQ(optimizer.last_report().owners[1].outcome.error().code(), Errc::cancelled);
  }
  EXPECT_TRUE(optimizer.try_save()) << "all are at the same step";
  train(optimizer, 1);
  ASSERT_TRUE(local.step(model.gradients(1)));
  EXPECT_TRUE(same_values(values(), model.parameters()));
  EXPECT_EQ(optimizer.last_report().scale, 1);
}

TEST_P(Steps, OP5_AnEarlierStateCountsOnFromItsStep) {
  DistributedOptimizer optimizer(here(), all_parameters(), AdamW{.lr = 0.02});
  train(optimizer, 0);
  const wire::Bytes saved = optimizer.save();
  for (int step = 1; step < 4; ++step) train(optimizer, step);
  optimizer.load(saved);
  train(optimizer, 1);
  EXPECT_EQ(optimizer.last_report().step.value, 2U);
}

at::Tensor make_wide() { return at::ones({5000}).requires_grad_(); }
at::Tensor weigh(const RRef<at::Tensor>& weight, const at::Tensor& x) { return *weight.local_value() * x; }

TEST(StepLimits, OP5_AStateLargerThanAMessageIsSavedAndLoaded) {
  const auto registry = [] {
    Registry made;
    made.add<&make_wide>("make_wide");
    made.add<&weigh>("weigh");
    return made;
  };
  testing::Cluster cluster(1, {"worker0", "worker1"}, registry,
                           [](WorkerOptions& options) { options.limits.message = 20'000; });
  const auto train = [&](const RRef<at::Tensor>& weight, DistributedOptimizer& optimizer) {
    Context context(cluster[0]);
    context.backward({cluster[0].rpc_sync<&weigh>("worker1", weight, at::ones({5000})).sum()});
    optimizer.step(context);
  };
  const auto first = cluster[0].remote<&make_wide>("worker1"), second = cluster[0].remote<&make_wide>("worker1");
  DistributedOptimizer optimizer(cluster[0], Parameters{first}, Adam{.lr = 0.1});
  DistributedOptimizer other(cluster[0], Parameters{second}, Adam{.lr = 0.5});
  train(first, optimizer);
  const wire::Bytes state = optimizer.save();
  EXPECT_GT(state.size(), 40'000U) << "two means of each of 5,000 numbers";
  other.load(state);
  EXPECT_EQ(other.save(), state);
  train(second, other);
  EXPECT_FALSE(at::equal(second.to_here(), at::ones({5000})));
}

TEST_P(Steps, NothingIsLeftWhenTheOptimizerEnds) {
  cluster_.run_until_idle();
  const auto before = cluster_[1].counters().owner_rrefs;
  {
    DistributedOptimizer optimizer(here(), all_parameters(), SGD{});
    cluster_.run_until_idle();
    EXPECT_GT(cluster_[1].counters().owner_rrefs, before);
  }
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, before);
  EXPECT_EQ(cluster_[0].counters().user_rrefs, 2U) << "two of the three layers are elsewhere";
}

}  // namespace
}  // namespace caftan::test::optimizer_step_test
