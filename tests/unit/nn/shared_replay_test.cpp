// Snapshots of parameters, means of gradients, and replays of step logs, with tensors.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "caftan/nn/fill_uniform.hpp"
#include "caftan/nn/gradient_mean.hpp"
#include "caftan/nn/internal/shared_schedule.hpp"
#include "caftan/nn/internal/version_store.hpp"
#include "caftan/nn/replay.hpp"

namespace caftan::nn::shared_replay_test {
namespace {

using namespace shared_action;
using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t call) {
  at::Tensor values = at::ones(sizes);
  fill_uniform(values, {.seed = 11, .call = call}, -1, 1);
  return values;
}

/// The weight and bias of two layers.
Tensors model_parameters() {
  return {drawn({6, 3}, 0).requires_grad_(), drawn({6}, 1).requires_grad_(), drawn({2, 6}, 2).requires_grad_(),
          drawn({2}, 3).requires_grad_()};
}

optim::LocalOptimizer optimizer_of(const Tensors& parameters) {
  return optim::LocalOptimizer::make({{parameters, optim::SGD{.lr = 0.3, .momentum = 0.9}}}).value();
}

at::Tensor loss_of(std::span<const at::Tensor> p, const at::Tensor& x, const at::Tensor& wanted) {
  const at::Tensor hidden = (x.matmul(p[0].t()) + p[1]).tanh();
  return at::mse_loss(hidden.matmul(p[2].t()) + p[3], wanted);
}

at::Tensor input_of(std::uint64_t batch) { return drawn({8, 3}, 100 + 2 * batch); }
at::Tensor target_of(std::uint64_t batch) { return drawn({8, 2}, 101 + 2 * batch); }

Tensors gradients_of(std::span<const at::Tensor> parameters, std::uint64_t batch) {
  return torch::autograd::grad({loss_of(parameters, input_of(batch), target_of(batch))},
                               {parameters.begin(), parameters.end()});
}

void expect_equal(std::span<const at::Tensor> one, std::span<const at::Tensor> other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(other[i])) << "parameter " << i;
}

// ---- snapshots

TEST(VersionStore, CM6_ASnapshotKeepsItsValuesUntilItsLastReaderIsGone) {
  const Tensors parameters = model_parameters();
  optim::LocalOptimizer optimizer = optimizer_of(parameters);
  VersionStore store(parameters, {7});
  const Tensors before = {parameters[0].detach().clone(), parameters[1].detach().clone(),
                          parameters[2].detach().clone(), parameters[3].detach().clone()};
  ASSERT_TRUE(store.pin({7}));
  ASSERT_TRUE(store.pin({7}, 2));
  for (std::uint64_t version = 8; version < 10; ++version) {
    ASSERT_TRUE(optimizer.step(gradients_of(parameters, version)));
    store.on_step({version});
    ASSERT_TRUE(store.pin({version}));
    EXPECT_EQ(store.snapshots(), version - 6);
  }
  expect_equal(*store.parameters({7}), before);
  expect_equal(*store.parameters({9}), parameters);
  EXPECT_FALSE((*store.parameters({8}))[0].equal(before[0]));
  const at::Tensor held = (*store.parameters({7}))[0];
  for (int reader = 0; reader < 3; ++reader) {
    EXPECT_TRUE(store.parameters({7})) << reader;
    store.unpin({7});
  }
  EXPECT_EQ(store.parameters({7}).error().code(), Errc::bad_arguments);
  EXPECT_EQ(store.pin({7}).error().code(), Errc::bad_arguments) << "its values are gone";
  EXPECT_EQ(store.snapshots(), 2U);
  EXPECT_TRUE(held.equal(before[0])) << "a tensor that was handed out";
}

TEST(VersionStore, SharesMemoryUntilAStepAndCopiesMemoryThatIsNotTorchs) {
  float numbers[3] = {1, 2, 3};
  const at::Tensor ours = drawn({4}, 5).requires_grad_();
  const at::Tensor foreign = at::from_blob(numbers, {3});
  VersionStore store({ours, foreign}, {0});
  ASSERT_TRUE(store.pin({0}));
  const std::span<const at::Tensor> snapshot = *store.parameters({0});
  EXPECT_EQ(snapshot[0].const_data_ptr(), ours.const_data_ptr());
  EXPECT_NE(snapshot[1].const_data_ptr(), foreign.const_data_ptr());
  EXPECT_TRUE(snapshot[0].is_leaf() && snapshot[0].requires_grad());
  EXPECT_FALSE(snapshot[1].requires_grad());
  numbers[0] = 9;
  EXPECT_EQ(snapshot[1][0].item<float>(), 1);
}

TEST(VersionStore, CM3_AGradientEqualsTheLocalOneAtTheVersionThatWasRead) {
  const Tensors parameters = model_parameters();
  const Tensors at_zero = gradients_of(parameters, 1);
  optim::LocalOptimizer optimizer = optimizer_of(parameters);
  VersionStore store(parameters, {0});
  ASSERT_TRUE(store.pin({0}));
  const std::span<const at::Tensor> snapshot = *store.parameters({0});
  const at::Tensor loss = loss_of(snapshot, input_of(1), target_of(1));  // the forward pass
  ASSERT_TRUE(optimizer.step(gradients_of(parameters, 2)));
  expect_equal(torch::autograd::grad({loss}, {snapshot.begin(), snapshot.end()}), at_zero);
}

// ---- means

TEST(GradientMean, CM12_AddsFromTheFirstToTheLastAndDividesByTheirNumber) {
  const at::Tensor large = at::full({1}, 1e8F), small = at::full({1}, 3.0F), none;
  const std::vector<Tensors> all = {{large, small}, {small, none}, {-large, none}, {small, none}};
  const Tensors mean = gradient_mean(all).value();
  EXPECT_EQ(mean[0].item<float>(), ((1e8F + 3.0F) - 1e8F + 3.0F) / 4);
  EXPECT_EQ(mean[1].item<float>(), 0.75F) << "no gradient counts as zero";
  EXPECT_EQ(small.item<float>(), 3.0F) << "unchanged";
  const std::vector<Tensors> without = {{none}, {none}};
  EXPECT_FALSE(gradient_mean(without).value()[0].defined());
  const std::vector<Tensors> one = {{small}};
  EXPECT_TRUE(gradient_mean(one).value()[0].is_same(small));
}

TEST(GradientMean, AddsSparseAndDenseInBothOrders) {
  const at::Tensor dense = drawn({3, 3}, 8), sparse = at::eye(3).to_sparse();
  const std::vector<Tensors> dense_first = {{dense}, {sparse}}, sparse_first = {{sparse}, {dense}};
  for (const std::vector<Tensors>& both : {dense_first, sparse_first}) {
    EXPECT_TRUE(gradient_mean(both).value()[0].equal((dense + at::eye(3)) / 2));
  }
}

TEST(GradientMean, RefusesWhatCannotBeAdded) {
  const std::vector<Tensors> lengths = {{at::ones({2})}, {}};
  const std::vector<Tensors> sizes = {{at::ones({2})}, {at::ones({3})}};
  EXPECT_EQ(gradient_mean({}).error().code(), Errc::bad_arguments);
  EXPECT_EQ(gradient_mean(lengths).error().code(), Errc::bad_arguments);
  EXPECT_EQ(gradient_mean(sizes).error().code(), Errc::invalid_gradient);
}

// ---- replays

/// A module that trainers share in one thread: does what a SharedSchedule asks for, and logs its steps. Each trainer
/// makes its calls and steps in an order that its number and `seed` choose.
class SharedNet {
 public:
  SharedNet(const ConsistencyOptions& options, std::uint32_t trainers, std::uint64_t seed)
      : parameters_(model_parameters()),
        optimizer_(optimizer_of(parameters_)),
        schedule_(SharedSchedule::make(options, trainers).value()),
        store_(parameters_, {0}),
        seed_(seed),
        trainers_(trainers) {
    log_.mode = options.mode;
  }

  /// Lets the trainers make steps until that many are applied.
  void train(std::size_t steps) {
    for (std::uint64_t choice = 0; log_.steps.size() < steps; ++choice) {
      const auto trainer = static_cast<std::uint32_t>(mix64(seed_ + choice) % trainers_.size());
      Trainer& it = trainers_[trainer];
      if (!it.is_there) {
        it = {.context = {WorkerId{trainer}, Incarnation{1}, ++contexts_}, .is_there = true};
        carry_out(schedule_.on_call(it.context, {trainer}));
      } else if (it.gradients.empty() && it.has_read) {
        it.gradients = gradients_of(read_by(it), batch_of(it.context));
        carry_out(schedule_.on_return(it.context));
        carry_out(schedule_.on_step(it.context, batch_of(it.context)));
      }
    }
  }

  const Tensors& parameters() const { return parameters_; }
  const StepLog& log() const { return log_; }

 private:
  struct Trainer {
    ContextId context{};
    bool is_there = false;
    bool has_read = false;
    ModelVersion read{};
    Tensors gradients{};
  };

  static std::uint64_t batch_of(const ContextId& context) { return context.number; }
  std::span<const at::Tensor> read_by(const Trainer& trainer) const {
    if (log_.mode == ConsistencyMode::locked) return parameters_;
    return *store_.parameters(trainer.read);
  }

  void carry_out(const SharedActions& actions) {
    for (const SharedAction& action : actions) {
      if (const Pin* pin = std::get_if<Pin>(&action)) {
        ASSERT_TRUE(store_.pin(pin->version, pin->readers));
      }
      if (const Unpin* unpin = std::get_if<Unpin>(&action)) store_.unpin(unpin->version);
      if (const Run* run = std::get_if<Run>(&action)) {
        Trainer& it = trainers_[run->context.worker.value];
        it.has_read = true;
        it.read = run->version;
      }
      if (const AnswerStep* answer = std::get_if<AnswerStep>(&action)) end(answer->context);
      if (const RefuseStep* refusal = std::get_if<RefuseStep>(&action)) end(refusal->context);
      if (const Apply* apply = std::get_if<Apply>(&action)) step(apply->step);
    }
  }
  void end(const ContextId& context) { trainers_[context.worker.value] = {}; }

  void step(const StepRecord& record) {
    std::vector<Tensors> all;
    for (const Contribution& c : record.contributions) all.push_back(trainers_[c.context.worker.value].gradients);
    ASSERT_TRUE(optimizer_.step(gradient_mean(all).value()));
    store_.on_step(record.step);
    log_.steps.push_back(record);
    carry_out(schedule_.on_applied({}));
  }

  Tensors parameters_;
  optim::LocalOptimizer optimizer_;
  SharedSchedule schedule_;
  VersionStore store_;
  std::uint64_t seed_;
  std::vector<Trainer> trainers_;
  std::uint64_t contexts_ = 0;
  StepLog log_;
};

Result<std::vector<at::Tensor>> compute(const Contribution& c, std::span<const at::Tensor> parameters) {
  return gradients_of(parameters, c.batch);
}

struct Case {
  ConsistencyOptions options;
  std::uint32_t trainers;
};

class Replay : public ::testing::TestWithParam<Case> {};

TEST_P(Replay, CM17_OfTheLogGivesTheSameParametersBitForBit) {
  const auto& [options, trainers] = GetParam();
  SharedNet shared(options, trainers, 5);
  shared.train(40);
  const StepLog log = parse_step_log(format_step_log(shared.log()), "log").value();
  const Tensors parameters = model_parameters();
  optim::LocalOptimizer optimizer = optimizer_of(parameters);
  const Result<void> done = replay(log, optimizer, compute);
  ASSERT_TRUE(done) << done;
  expect_equal(parameters, shared.parameters());
  EXPECT_FALSE(parameters[0].equal(model_parameters()[0]));
  EXPECT_EQ(staleness_histogram(log).size() > 1, options.mode == ConsistencyMode::versioned && trainers > 1);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::uint32_t trainers : {1U, 2U, 4U}) {
    for (const ConsistencyMode mode : {ConsistencyMode::locked, ConsistencyMode::versioned, ConsistencyMode::sync}) {
      cases.push_back({{.mode = mode}, trainers});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Modes, Replay, ::testing::ValuesIn(all_cases()), [](const auto& info) {
  return std::string(to_string(info.param.options.mode)) + "_" + std::to_string(info.param.trainers);
});

TEST(SharedReplay, CM12_ASyncStepEqualsOneOfTheWholeBatch) {
  SharedNet shared({.mode = ConsistencyMode::sync}, 4, 5);
  shared.train(1);
  Tensors inputs, targets;
  for (const Contribution& c : shared.log().steps[0].contributions) {
    inputs.push_back(input_of(c.batch));
    targets.push_back(target_of(c.batch));
  }
  const Tensors parameters = model_parameters();
  optim::LocalOptimizer optimizer = optimizer_of(parameters);
  const at::Tensor loss = loss_of(parameters, at::cat(inputs), at::cat(targets));
  ASSERT_TRUE(optimizer.step(torch::autograd::grad({loss}, parameters)));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(parameters[i].allclose(shared.parameters()[i], 1e-6, 1e-6)) << "parameter " << i;
  }
}

TEST(SharedReplay, NamesTheStepThatCannotBeMade) {
  SharedNet shared({}, 2, 5);
  shared.train(3);
  const Tensors parameters = model_parameters();
  optim::LocalOptimizer optimizer = optimizer_of(parameters);
  const auto without_data = [](const Contribution& c, std::span<const at::Tensor> p) -> Result<Tensors> {
    if (c.batch == 0) return Tensors(p.begin(), p.end());
    return user_error("data.missing", "no batch " + std::to_string(c.batch));
  };
  const Error error = replay(shared.log(), optimizer, without_data).error();
  EXPECT_EQ(error.kind(), "data.missing");
  EXPECT_THAT(error.text(), HasSubstr("step 1: no batch "));
}

}  // namespace
}  // namespace caftan::nn::shared_replay_test
