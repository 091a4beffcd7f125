// Shared modules over a cluster: each mode with 1, 2 and 4 trainers, whose parameters a replay of the log gives bit for
// bit; who waits for whom; states and rates.
#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>

#include <chrono>
#include <tuple>

#include "caftan/optim/cyclic_schedules.hpp"
#include "caftan/optim/schedules.hpp"
#include "shared_roles.hpp"

namespace caftan::test::shared_module_test {
namespace {

using nn::ConsistencyMode;
using nn::ConsistencyOptions;
using nn::LeaseOrder;
using nn::SharedModule;
using ::testing::HasSubstr;

// ---- whole runs

class SharedRuns : public SharedCluster,
                   public ::testing::TestWithParam<std::tuple<int, std::uint32_t, std::uint64_t>> {
 protected:
  SharedRuns() : SharedCluster(std::get<2>(GetParam())) {}
  static ConsistencyMode mode() { return static_cast<ConsistencyMode>(std::get<0>(GetParam())); }
  static std::uint32_t trainers() { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, SharedRuns,
                         ::testing::Combine(::testing::Values(0, 1, 2), ::testing::Values(1U, 2U, 4U),
                                            ::testing::Range<std::uint64_t>(1, 5)));

TEST_P(SharedRuns, CM17_AReplayOfTheLogGivesTheSameBits) {
  constexpr std::uint64_t kSteps = 6;
  const SharedModule<Layers> net = make({.mode = mode()}, trainers());
  std::vector<Future<Trained>> runs;
  for (std::uint32_t number = 0; number < trainers(); ++number) {
    runs.push_back(cluster_["maker"].rpc_async<&train>("t" + std::to_string(number), net, number, kSteps));
  }
  for (Future<Trained>& run : runs) EXPECT_EQ(run.get().applied, kSteps);
  const nn::SharedStatus status = net.status();
  EXPECT_EQ(status.version.value, mode() == ConsistencyMode::sync ? kSteps : kSteps * trainers());
  const nn::StepLog log = nn::read_step_log(log_path()).value();
  EXPECT_EQ(log.last(), status.version);
  EXPECT_EQ(nn::staleness_histogram(log), status.staleness);
  expect_replay(net);
  EXPECT_TRUE(same({net.evaluate(input_of(7))}, {net.evaluation().forward(input_of(7))}));
  cluster_.run_until_idle();
  EXPECT_EQ(net.status().open_contexts, 0U);
  EXPECT_EQ(net.status().gone.size(), trainers()) << "their handles are gone";
}

TEST_P(SharedRuns, CM17_AlsoWhenStepsAreStaleLateOrInConflict) {
  ConsistencyOptions options{.mode = mode()};
  if (mode() == ConsistencyMode::locked) options.lease = LeaseOrder::oldest_waits;
  if (mode() == ConsistencyMode::versioned) options.max_staleness = 1;
  if (mode() == ConsistencyMode::sync) {
    options.quorum = 1;
    options.straggler_timeout = std::chrono::nanoseconds(0);
  }
  const SharedModule<Layers> net = make(options, trainers());
  std::vector<Future<Trained>> runs;
  for (std::uint32_t number = 0; number < trainers(); ++number) {
    runs.push_back(cluster_["maker"].rpc_async<&train>("t" + std::to_string(number), net, number, std::uint64_t{4}));
  }
  for (Future<Trained>& run : runs) EXPECT_EQ(run.get().applied, 4U);
  expect_replay(net);
}

// ---- trainers that a test moves

class SharedModes : public SharedCluster, public ::testing::TestWithParam<std::uint64_t> {
 protected:
  SharedModes() : SharedCluster(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Seeds, SharedModes, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(SharedModes, CM7_InLockedTheSecondTrainerWaitsForTheFirstOnesStep) {
  const auto net = make({.mode = ConsistencyMode::locked}, 2);
  const auto first = trainer(0, net), second = trainer(1, net);
  first->compute(1);
  second->begin();
  Future<at::Tensor> waits = second->forward(2);
  cluster_.run_until_idle();
  EXPECT_FALSE(waits.ready());
  EXPECT_EQ(first->step(1).get().version.value, 1U);
  second->backward(waits.get(), 2).value();
  const nn::StepResult done = second->step(2).get();
  EXPECT_EQ(done.version.value, 2U);
  EXPECT_EQ(done.staleness, 0U);
  expect_replay(net);
}

TEST_P(SharedModes, CM8_AnEvaluationNeedsNoLease) {
  const auto net = make({.mode = ConsistencyMode::locked}, 1);
  const auto holder = trainer(0, net);
  holder->compute(1);
  const at::Tensor before = net.evaluate(input_of(5));
  const auto evaluation = net.evaluation();
  holder->step(1).get();
  EXPECT_EQ(evaluation.version().value, 0U);
  EXPECT_TRUE(evaluation.forward(input_of(5)).equal(before)) << "an evaluation keeps its version";
  EXPECT_FALSE(net.evaluate(input_of(5)).equal(before));
  EXPECT_FALSE(evaluation.rpc_sync<&Layers::is_in_train_mode>());
  EXPECT_FALSE(before.requires_grad());
}

TEST_P(SharedModes, CM6_AnEvaluationKeepsItsVersionForItsCalls) {
  const auto net = make({.mode = ConsistencyMode::versioned}, 1);
  const at::Tensor before = net.evaluate(input_of(5));
  Future<at::Tensor> inside, queued;
  {
    const auto evaluation = net.evaluation();
    inside = evaluation.rpc_async<&Layers::forward_at_gate>(input_of(5));
    queued = evaluation.forward_async(input_of(5));
  }
  cluster_.run_until_idle();
  const auto it = trainer(0, net);
  it->compute(1);
  it->step(1).get();
  const auto later = net.evaluation();
  open_gate();
  EXPECT_TRUE(inside.get().equal(before));
  EXPECT_TRUE(queued.get().equal(before)) << "it waited for its turn when its evaluation ended";
  EXPECT_FALSE(later.forward(input_of(5)).equal(before));
}

TEST_P(SharedModes, CM9_OldestWaitsRefusesTheYoungerContext) {
  const auto net = make({.mode = ConsistencyMode::locked, .lease = LeaseOrder::oldest_waits}, 2);
  const auto older = trainer(0, net), younger = trainer(1, net);
  older->begin();
  younger->begin();  // of the same number, at a worker with a higher id
  older->forward(1).get();
  EXPECT_EQ(younger->forward(2).result().error().code(), Errc::lease_conflict);
  older->end();
  younger->end();
  cluster_.run_until_idle();
  younger->compute(3);
  Future<at::Tensor> waits = (older->begin(), older->forward(4));
  cluster_.run_until_idle();
  EXPECT_FALSE(waits.ready()) << "an older one waits";
  younger->step(3).get();
  EXPECT_TRUE(waits.result());
}

TEST_P(SharedModes, CM10_InVersionedContextsReadBesideEachOther) {
  const auto net = make({.mode = ConsistencyMode::versioned}, 2);
  const auto first = trainer(0, net), second = trainer(1, net);
  first->begin();
  const at::Tensor read = first->forward(1).get();
  second->compute(2);
  EXPECT_EQ(second->step(2).get().version.value, 1U);
  second->end();
  EXPECT_TRUE(first->forward(1).get().equal(read)) << "CM-3: all calls of a context read its version";
  first->backward(first->forward(1).get(), 1).value();
  const nn::StepResult done = first->step(1).get();
  EXPECT_EQ(done.version.value, 2U);
  EXPECT_EQ(done.staleness, 1U);
  EXPECT_EQ(net.status().staleness, (std::vector<std::uint64_t>{1, 1}));
  expect_replay(net);
}

TEST_P(SharedModes, CM10_ACallThatTakesLongHoldsUpNoOtherContext) {
  for (const ConsistencyMode mode : {ConsistencyMode::versioned, ConsistencyMode::sync}) {
    const SharedModule<Layers> net(cluster_["maker"], "ps", {.consistency = {.mode = mode}, .trainers = 2}, kSeed);
    const auto slow = trainer(0, net), quick = trainer(1, net);
    slow->begin();
    Future<at::Tensor> waits = slow->act([&] { return slow->net().rpc_async<&Layers::forward_at_gate>(input_of(1)); });
    cluster_.run_until_idle();
    quick->compute(2);
    Future<nn::StepResult> step = quick->step(2);
    cluster_.run_until_idle();
    EXPECT_EQ(step.ready(), mode == ConsistencyMode::versioned) << "a round waits for its trainers";
    open_gate();
    slow->backward(waits.get(), 1).value();
    EXPECT_TRUE(slow->step(1).result());
    EXPECT_TRUE(step.result());
  }
}

TEST_P(SharedModes, CM11_AGradientTooFarBehindIsRefused) {
  const auto net = make({.mode = ConsistencyMode::versioned, .max_staleness = 1}, 2);
  const auto slow = trainer(0, net), quick = trainer(1, net);
  slow->compute(1);
  for (std::uint64_t batch = 2; batch < 4; ++batch) {
    quick->compute(batch);
    quick->step(batch).get();
    quick->end();
  }
  const Error error = slow->step(1).result().error();
  EXPECT_EQ(error.code(), Errc::stale_gradient);
  EXPECT_THAT(error.text(), HasSubstr("2 steps behind"));
  EXPECT_EQ(net.status().version.value, 2U) << "nothing was applied";
  EXPECT_EQ(slow->forward(1).result().error().code(), Errc::bad_arguments) << "CM-4";
  slow->end();
  slow->compute(1);
  EXPECT_EQ(slow->step(1).get().version.value, 3U);
  expect_replay(net);
}

TEST_P(SharedModes, CM13_AQuorumClosesTheRoundWhenItsTimeIsOver) {
  const auto net = make({.mode = ConsistencyMode::sync, .quorum = 2, .straggler_timeout = std::chrono::seconds(3)}, 3);
  const auto a = trainer(0, net), b = trainer(1, net), straggler = trainer(2, net);
  for (const auto* each : {&a, &b, &straggler}) (*each)->compute(1);
  Future<nn::StepResult> first = b->step(1);
  cluster_.advance(std::chrono::seconds(10));
  EXPECT_FALSE(first.ready()) << "one is no quorum";
  Future<nn::StepResult> second = a->step(1);
  cluster_.advance(std::chrono::milliseconds(2999));
  EXPECT_FALSE(second.ready());
  cluster_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(first.get().contributions, 2U);
  EXPECT_EQ(second.get().version.value, 1U);
  EXPECT_EQ(straggler->step(1).result().error().code(), Errc::round_closed);
  expect_replay(net);
}

TEST_P(SharedModes, CM12_ARoundIsOneStepOfTheMeanInTheOrderOfTheTrainers) {
  const auto net = make({.mode = ConsistencyMode::sync}, 3);
  std::vector<std::unique_ptr<ByHandTrainer>> trainers;
  for (const std::uint32_t number : {2U, 0U, 1U}) trainers.push_back(trainer(number, net));
  std::vector<Future<nn::StepResult>> steps;
  for (const auto& one : trainers) {
    one->compute(*one->net().trainer());
    steps.push_back(one->step(*one->net().trainer()));
  }
  for (Future<nn::StepResult>& step : steps) EXPECT_EQ(step.get().contributions, 3U);
  const nn::StepLog log = nn::read_step_log(log_path()).value();
  ASSERT_EQ(log.steps.size(), 1U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(log.steps[0].contributions[i].trainer.value, i);
  expect_replay(net);
}

// ---- buffers, state and random numbers

TEST_P(SharedModes, CM22_ABufferComesWithTheStepOfItsContext) {
  const auto examples = [](const nn::StateDict& state) { return state[4].tensor.item<double>(); };
  const auto calls = [](const nn::StateDict& state) { return state[5].tensor.item<std::int64_t>(); };
  const auto net = make({.mode = ConsistencyMode::sync}, 2);
  const auto a = trainer(0, net), b = trainer(1, net);
  a->compute(1);
  b->begin();
  b->forward(2).get();
  b->backward(b->forward(2).get(), 2).value();
  EXPECT_EQ(examples(net.state_dict()), 0) << "no step has come";
  Future<nn::StepResult> step = a->step(1);
  b->step(2).get();
  step.get();
  EXPECT_EQ(examples(net.state_dict()), 12) << "the mean of 8 and 16";
  EXPECT_EQ(calls(net.state_dict()), 1) << "no floating dtype: the first trainer's";
}

TEST_P(SharedModes, CM1_AStepWhoseBuffersDoNotFitChangesNothing) {
  const auto net = make({.mode = ConsistencyMode::versioned}, 1);
  const auto it = trainer(0, net);
  const Tensors before = parameters_of(net.state_dict());
  for (int i = 0; i < 2; ++i) {
    it->begin();
    const at::Tensor y = it->act([&] { return it->net().rpc_sync<&Layers::forward_growing>(input_of(1)); });
    it->backward(y, 1).value();
    const Error error = it->step(1).result().error();
    EXPECT_EQ(error.code(), Errc::unsupported);
    EXPECT_THAT(error.text(), HasSubstr("buffer 0"));
    EXPECT_TRUE(same(parameters_of(net.state_dict()), before));
    EXPECT_EQ(net.status().version.value, 0U);
    it->end();
    cluster_.run_until_idle();
  }
  EXPECT_TRUE(nn::read_step_log(log_path()).value().steps.empty());
  it->compute(2);
  EXPECT_EQ(it->step(2).get().version.value, 1U) << "the next context has a copy that fits";
  expect_replay(net);
}

/// A handle that shows what an evaluation reads.
struct OpenedDrawing : SharedModule<Drawing> {
  explicit OpenedDrawing(const SharedModule<Drawing>& other) : SharedModule<Drawing>(other) {}
  Future<nn::Reading> read() const { return open_evaluation(); }
};

TEST_P(SharedModes, CM19_CopiesThatAreAskedForAtTheSameTimeDrawNoNumberOfTheUsers) {
  const SharedModule<Drawing> net(cluster_["maker"], "ps", {}, 1);
  net.created().get();
  at::manual_seed(5);
  const at::Tensor next = at::rand({3});
  at::manual_seed(5);
  close_drawing_gate();
  Future<nn::Reading> first = OpenedDrawing(net).read(), second = OpenedDrawing(net).read();
  do {
    cluster_.run_until_idle();
  } while (let_one_draw());
  EXPECT_TRUE(first.result());
  EXPECT_TRUE(second.result());
  EXPECT_TRUE(at::rand({3}).equal(next));
}

TEST_P(SharedModes, CM23_AStateIsLoadedOnlyBetweenContexts) {
  for (const ConsistencyMode mode : {ConsistencyMode::locked, ConsistencyMode::versioned, ConsistencyMode::sync}) {
    const SharedModule<Layers> net(cluster_["maker"], "ps", {.consistency = {.mode = mode}, .trainers = 2}, kSeed);
    nn::StateDict state = net.state_dict();
    for (nn::NamedTensor& one : state) one.tensor.fill_(1);
    const auto open = trainer(0, net);
    open->compute(1);
    const nn::StateOptions at_once{.wait = std::chrono::seconds(0)};
    EXPECT_EQ(net.try_load_state_dict(state, at_once).error().code(), Errc::module_busy);
    open->end();
    cluster_.run_until_idle();
    net.load_state_dict(state);
    open->begin();
    EXPECT_TRUE(open->forward(1).get().equal(net.evaluate(input_of(1))));
    EXPECT_TRUE(net.state_dict()[0].tensor.equal(at::full({6, 3}, 1.0)));
  }
}

TEST_P(SharedModes, CM23_ATrainingGoesOnFromItsStates) {
  const nn::SharedOptions options{.consistency = {.mode = ConsistencyMode::versioned}, .algorithm = algorithm_};
  const SharedModule<Layers> whole(cluster_["maker"], "ps", options, kSeed);
  const SharedModule<Layers> resumed(cluster_["maker"], "ps", options, kSeed + 1);
  const auto step = [](ByHandTrainer& it, std::uint64_t batch) {
    it.compute(batch);
    it.step(batch).get();
    it.end();
  };
  const auto first = trainer(0, whole), second = trainer(0, resumed);
  for (std::uint64_t batch = 0; batch < 3; ++batch) step(*first, batch);
  const wire::Bytes saved = whole.save_optimizer();
  second->compute(1);
  EXPECT_EQ(resumed.try_load_optimizer(saved).error().code(), Errc::module_busy);
  second->end();
  cluster_.run_until_idle();
  resumed.load_state_dict(whole.state_dict());
  EXPECT_EQ(resumed.try_load_optimizer(wire::ByteView(saved).first(9)).error().code(), Errc::malformed_payload);
  resumed.load_optimizer(saved);
  for (std::uint64_t batch = 3; batch < 6; ++batch) {
    step(*first, batch);
    step(*second, batch);
  }
  EXPECT_TRUE(same(parameters_of(resumed.state_dict()), parameters_of(whole.state_dict())));
}

TEST(SharedLimits, CM23_AnOptimizersStateLargerThanAMessageIsSavedAndLoaded) {
  testing::Cluster cluster(1, {"maker", "ps"}, make_shared_registry,
                           [](WorkerOptions& options) { options.limits.message = 20'000; });
  const nn::SharedOptions options{.consistency = {.mode = ConsistencyMode::locked},
                                  .algorithm = optim::Adam{.lr = 0.1}};
  SharedModule<Keeping> net(cluster["maker"], "ps", options, at::full({5000}, 1.0));
  const SharedModule<Keeping> other(cluster["maker"], "ps", options, at::full({5000}, 1.0));
  net.join(0);
  {
    const autograd::Context context(cluster["maker"]);
    context.backward({net.forward(at::full({5000}, 1.0)).sum()});
    net.step(context, 1);
  }
  cluster.run_until_idle();
  const wire::Bytes state = net.save_optimizer();
  EXPECT_GT(state.size(), 40'000U) << "two means of each of 5,000 numbers";
  other.load_optimizer(state);
  EXPECT_EQ(other.save_optimizer(), state);
}

// ---- schedules

TEST_P(SharedModes, CM25_TheScheduleOfATrainerSetsTheRatesOfItsStepsAndTheLogHasThem) {
  const auto mode = static_cast<ConsistencyMode>(GetParam() - 1);
  const auto net = make({.mode = mode}, 2);
  const auto first = trainer(0, net), second = trainer(1, net);
  optim::OneCycleLR rising(first->net().rates(), {.max_lr = {0.5}, .total_steps = 8});
  optim::StepLR falling(second->net().rates(), {.step_size = 1, .gamma = 0.5});
  std::vector<double> rises, falls;
  for (std::uint64_t batch = 0; batch < 4; ++batch) {
    rises.push_back(first->net().rates().lr(0));
    falls.push_back(second->net().rates().lr(0));
    first->compute(batch);
    Future<nn::StepResult> one = first->step(batch);
    if (mode != ConsistencyMode::sync) cluster_.run_until_idle();
    second->compute(100 + batch);
    EXPECT_TRUE(second->step(100 + batch).result());
    EXPECT_TRUE(one.result());
    for (ByHandTrainer* const it : {first.get(), second.get()}) it->end();
    rising.step();
    falling.step();
  }
  const nn::StepLog log = nn::read_step_log(log_path()).value();
  ASSERT_EQ(log.steps.size(), mode == ConsistencyMode::sync ? 4U : 8U);
  for (const nn::StepRecord& step : log.steps) {
    const nn::Contribution& by = step.contributions.front();
    ASSERT_TRUE(step.rates);
    EXPECT_EQ(step.rates->lr, by.trainer.value == 0 ? rises[by.batch] : falls[by.batch - 100]);
    EXPECT_EQ(step.rates->momentum.has_value(), by.trainer.value == 0) << "StepLR sets none";
  }
  EXPECT_NE(rises[0], rises[1]);
  EXPECT_EQ(falls[1], 0.1);
  expect_replay(net);
}

TEST_P(SharedModes, CM26_RatesThatAreRefusedChangeNothing) {
  const auto net = make({}, 2);
  const auto it = trainer(0, net), other = trainer(1, net);
  optim::LearningRates& rates = it->net().rates();
  EXPECT_EQ(rates.lr(0), 0.2);
  EXPECT_EQ(rates.momentum(0), 0.9);
  EXPECT_EQ(&it->net().rates(), &rates);
  rates.set_lr(0, -1);
  it->compute(1);
  EXPECT_EQ(it->step(1).result().error().code(), Errc::bad_arguments);
  EXPECT_EQ(net.status().version.value, 0U);
  EXPECT_EQ(other->net().rates().lr(0), 0.2) << "the owner's rate";
  rates.set_lr(0, 0.05);
  EXPECT_TRUE(it->step(1).result()) << "the context reads on";
  EXPECT_EQ(net.try_rates().error().code(), Errc::bad_arguments) << "no trainer";
  expect_replay(net);
}

TEST_P(SharedModes, CM25_AResumedScheduleHasTheInitialRateOfTheSavedOptimizer) {
  const nn::SharedOptions options{.algorithm = algorithm_};
  const SharedModule<Layers> whole(cluster_["maker"], "ps", options, kSeed);
  const SharedModule<Layers> resumed(cluster_["maker"], "ps", options, kSeed);
  const auto first = trainer(0, whole), second = trainer(0, resumed);
  const auto step = [](ByHandTrainer& it, std::uint64_t batch, optim::AnySchedule& schedule) {
    it.compute(batch);
    it.step(batch).get();
    it.end();
    schedule.step();
  };
  optim::CosineAnnealingLR schedule(first->net().rates(), {.t_max = 6});
  for (std::uint64_t batch = 0; batch < 3; ++batch) step(*first, batch, schedule);
  const double next = first->net().rates().lr(0);
  resumed.load_state_dict(whole.state_dict());
  resumed.load_optimizer(whole.save_optimizer());
  optim::CosineAnnealingLR again(second->net().rates(), {.t_max = 6});
  EXPECT_EQ(second->net().rates().initial_lrs(), std::vector<double>{0.2});
  again.load(schedule.state()).value();
  second->net().rates().set_lr(0, next);
  for (std::uint64_t batch = 3; batch < 6; ++batch) {
    step(*first, batch, schedule);
    step(*second, batch, again);
  }
  EXPECT_TRUE(same(parameters_of(resumed.state_dict()), parameters_of(whole.state_dict())));
}

}  // namespace
}  // namespace caftan::test::shared_module_test
