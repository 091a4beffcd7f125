// LBFGS: steps against torch::optim::LBFGS, bit for bit; steps that are given up; its saved states.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/lbfgs.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>

#include "caftan/optim/local_optimizer.hpp"
#include "caftan/tensor/operators.hpp"
#include "strong_wolfe.hpp"

namespace caftan::optim::lbfgs_test {
namespace {

using ::testing::HasSubstr;
using Random = std::mt19937_64;
using Tensors = std::vector<at::Tensor>;
using Search = LBFGS::LineSearch;

/// A function with several minima, in which every element depends on all others.
at::Tensor hills(const Tensors& parameters) {
  at::Tensor loss = at::zeros({}, parameters[0].options().requires_grad(false));
  at::Tensor mean = loss;
  double angle = 1;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor row = parameter.reshape({-1});
    loss = loss + (row * row - 1).square().sum() * 0.25 + (row * angle).sin().sum();
    mean = mean + row.sum();
    angle += 0.5;
  }
  return loss + mean.square() * 0.1;
}

/// Returns the loss and its gradients; `.grad` is left as it was, without one.
LocalEvaluation evaluate(const Tensors& parameters, const at::Tensor& loss) {
  loss.backward();
  LocalEvaluation value{loss.item<double>(), {}};
  for (const at::Tensor& parameter : parameters) {
    value.gradients.push_back(parameter.grad());
    parameter.mutable_grad() = at::Tensor();
  }
  return value;
}

Tensors clone_all(const Tensors& parameters) {
  Tensors copies;
  for (const at::Tensor& p : parameters) copies.push_back(p.detach().clone().requires_grad_());
  return copies;
}

bool same_bits(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i].detach(), b[i].detach())) return false;
  }
  return true;
}

torch::optim::LBFGSOptions torch_options(const LBFGS& options) {
  torch::optim::LBFGSOptions torch(options.lr);
  torch.max_iter(options.max_iter)
      .max_eval(options.max_eval)
      .tolerance_grad(options.tolerance_grad)
      .tolerance_change(options.tolerance_change)
      .history_size(options.history_size);
  if (options.line_search == Search::strong_wolfe) torch.line_search_fn("strong_wolfe");
  return torch;
}

class LbfgsParity : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Settings, LbfgsParity, ::testing::Range<std::uint64_t>(1, 61));

TEST_P(LbfgsParity, Row21_01_EqualsTorchBitForBit) {
  Random random(GetParam());
  at::manual_seed(GetParam());
  const auto pick = [&random](std::initializer_list<double> values) {
    return values.begin()[random() % values.size()];
  };
  const LBFGS options{.lr = pick({1, 0.3, 0.01}),
                      .max_iter = static_cast<std::int64_t>(pick({1, 2, 7, 20})),
                      .max_eval = random() % 2 == 0 ? std::nullopt : std::optional<std::int64_t>(9),
                      .tolerance_grad = pick({1e-7, 1e-2}),
                      .tolerance_change = pick({1e-9, 1e-3}),
                      .history_size = static_cast<std::int64_t>(pick({1, 3, 100})),
                      .line_search = random() % 2 == 0 ? Search::none : Search::strong_wolfe};
  const at::ScalarType dtype = random() % 3 == 0 ? at::kDouble : at::kFloat;
  Tensors parameters;
  for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
    std::vector<std::int64_t> sizes(random() % 3);
    for (std::int64_t& size : sizes) size = static_cast<std::int64_t>(pick({1, 2, 5, 17}));
    parameters.push_back(at::randn(sizes, dtype).requires_grad_());
  }
  const Tensors copies = clone_all(parameters);
  torch::optim::LBFGS torch(copies, torch_options(options));
  LocalOptimizer ours = LocalOptimizer::make({{parameters, options}}).value();
  for (int step = 0; step < 5; ++step) {
    std::size_t evaluations = 0;
    std::size_t torch_evaluations = 0;
    const double loss = ours.step([&]() -> Result<LocalEvaluation> {
                              ++evaluations;
                              return evaluate(parameters, hills(parameters));
                            })
                            .value();
    const at::Tensor torch_loss = torch.step([&] {
      ++torch_evaluations;
      torch.zero_grad();
      const at::Tensor value = hills(copies);
      value.backward();
      return value;
    });
    EXPECT_EQ(loss, torch_loss.item<double>());
    EXPECT_EQ(evaluations, torch_evaluations);
    ASSERT_TRUE(same_bits(parameters, copies)) << "step " << step;
  }
}

/// Rosenbrock's function of two numbers, whose minimum is at (1, 1).
at::Tensor valley(const Tensors& parameters) {
  const at::Tensor x = parameters[0].select(0, 0);
  const at::Tensor y = parameters[0].select(0, 1);
  return (1 - x).square() + 100 * (y - x * x).square();
}

TEST(Lbfgs, WithALineSearchItFindsTheEndOfRosenbrocksValley) {
  const Tensors parameters{at::tensor({-1.5, 2.0}, at::kDouble).requires_grad_()};
  const LBFGS options{.max_iter = 100, .max_eval = 200, .line_search = Search::strong_wolfe};
  LocalOptimizer optimizer = LocalOptimizer::make({{parameters, options}}).value();
  const auto closure = [&]() -> Result<LocalEvaluation> { return evaluate(parameters, valley(parameters)); };
  const double first = optimizer.step(closure).value();
  EXPECT_NEAR(first, 12.5, 1e-12);
  EXPECT_NEAR(parameters[0][0].item<double>(), 1, 1e-3);
  EXPECT_NEAR(parameters[0][1].item<double>(), 1, 1e-3);
}

TEST(StrongWolfe, FindsAPlaceThatFulfilsBothConditions) {
  // f(t) = (t - 3)^2 + cos(4 t), from 0 along 1.
  const auto f = [](double t) { return (t - 3) * (t - 3) + std::cos(4 * t); };
  const auto slope = [](double t) { return 2 * (t - 3) - 4 * std::sin(4 * t); };
  const auto gradient = [&](double t) { return at::tensor({slope(t)}, at::kDouble); };
  for (const double first : {1e-3, 0.1, 1.0, 7.0, 50.0}) {
    StrongWolfe search(at::ones({1}, at::kDouble), first, LinePoint{0, f(0), gradient(0), slope(0)});
    while (search.evaluated(f(search.next()), gradient(search.next()))) {
    }
    const LinePoint& best = search.best();
    EXPECT_LE(best.loss, f(0) + 1e-4 * best.t * slope(0)) << "from " << first;
    EXPECT_LE(std::abs(slope(best.t)), 0.9 * std::abs(slope(0))) << "from " << first;
    EXPECT_LE(search.evaluations(), 26);
    EXPECT_EQ(best.loss, f(best.t));
  }
}

TEST(StrongWolfe, EndsWhereTheFunctionFallsForEver) {
  StrongWolfe search(at::ones({1}, at::kDouble), 1, LinePoint{0, 0, at::tensor({-1.0}, at::kDouble), -1});
  while (search.evaluated(-search.next(), at::tensor({-1.0}, at::kDouble))) {
  }
  EXPECT_EQ(search.evaluations(), 26);
  EXPECT_GT(search.best().t, 1);
}

// ---- steps that are given up

/// Two parameters under one LBFGS, whose closure counts and can fail.
struct Trial {
  // Without tolerances each step has all its iterations.
  explicit Trial(Search search)
      : options{.lr = 0.2, .max_iter = 6, .tolerance_grad = 0, .tolerance_change = 0, .line_search = search} {}

  Result<LocalEvaluation> operator()() {
    if (++evaluations == fails_at) return Error(Errc::remote_exception, "the data are missing");
    if (evaluations == throws_at) throw std::runtime_error("the data are burnt");
    return evaluate(parameters, hills(parameters));
  }
  Result<double> step() {
    evaluations = 0;
    return optimizer.step([this] { return (*this)(); });
  }

  LBFGS options;
  Tensors parameters{at::tensor({0.3, -0.2, 0.8}, at::kFloat).requires_grad_(),
                     at::tensor({2.0, 0.1}, at::kFloat).view({1, 2}).requires_grad_()};
  LocalOptimizer optimizer = LocalOptimizer::make({{parameters, options}}).value();
  int evaluations = 0;
  int fails_at = 0;
  int throws_at = 0;
};

class GivenUp : public ::testing::TestWithParam<Search> {};
INSTANTIATE_TEST_SUITE_P(LineSearches, GivenUp, ::testing::Values(Search::none, Search::strong_wolfe));

TEST_P(GivenUp, OP12_AClosureThatFailsLeavesParametersAndStateAsTheyWere) {
  Trial trial(GetParam());
  Trial undisturbed(GetParam());
  ASSERT_TRUE(trial.step());
  ASSERT_TRUE(undisturbed.step());
  const Tensors before = clone_all(trial.parameters);
  const wire::Bytes state = trial.optimizer.save().value();
  for (const int at : {1, 2, 4}) {
    trial.fails_at = at;
    const auto failed = trial.step();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().text(), "the data are missing");
    EXPECT_TRUE(same_bits(trial.parameters, before)) << at;
    trial.fails_at = 0;
    trial.throws_at = at;
    EXPECT_THROW((void)trial.step(), std::runtime_error);
    EXPECT_TRUE(same_bits(trial.parameters, before)) << at;
    trial.throws_at = 0;
    EXPECT_EQ(trial.optimizer.save().value(), state);
    EXPECT_FALSE(trial.optimizer.is_searching());
  }
  ASSERT_TRUE(trial.step());
  ASSERT_TRUE(undisturbed.step());
  EXPECT_TRUE(same_bits(trial.parameters, undisturbed.parameters));
}

TEST(Lbfgs, OP6_EveryEvaluationRaisesTheVersionsOfTheParameters) {
  Trial trial(Search::none);
  const auto before = trial.parameters[1]._version();
  ASSERT_TRUE(trial.step());
  EXPECT_GE(trial.parameters[1]._version(), before + static_cast<std::uint64_t>(trial.evaluations) - 1);
}

TEST(Lbfgs, AGradientThatDoesNotFitIsRefusedAndThePlaceKept) {
  Trial trial(Search::none);
  const Tensors before = clone_all(trial.parameters);
  int evaluations = 0;
  const auto refused = trial.optimizer.step([&]() -> Result<LocalEvaluation> {
    LocalEvaluation value = evaluate(trial.parameters, hills(trial.parameters));
    if (++evaluations == 3) value.gradients[1] = at::ones({3});
    return value;
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  EXPECT_THAT(refused.error().text(), HasSubstr("parameter 1 (Float [1, 2]) has a gradient of Float [3]"));
  EXPECT_TRUE(same_bits(trial.parameters, before));
}

TEST(Lbfgs, TakesSparseMissingAndTransposedGradients) {
  const at::Tensor table = at::ones({4, 2}).requires_grad_();
  const at::Tensor turned = at::ones({3, 2}).t().detach().requires_grad_();
  const at::Tensor unused = at::ones({2}).requires_grad_();
  const Tensors parameters{table, turned, unused};
  LocalOptimizer optimizer = LocalOptimizer::make({{parameters, LBFGS{.max_iter = 3}}}).value();
  const auto closure = [&]() -> Result<LocalEvaluation> {
    const at::Tensor rows = at::embedding(table, at::tensor({1, 3}, at::kLong), -1, false, /*sparse=*/true);
    return evaluate(parameters, rows.square().sum() + (turned * turned).sum());
  };
  ASSERT_TRUE(optimizer.step(closure));
  EXPECT_TRUE(at::equal(unused.detach(), at::ones({2})));
  EXPECT_TRUE(at::equal(table.detach()[0], at::ones({2})));
  EXPECT_LT(table.detach()[1][0].item<double>(), 1);
  EXPECT_LT(turned.detach()[1][2].item<double>(), 1);
}

// ---- refusals

std::string refusal(std::vector<ParameterGroup> groups) {
  const auto made = LocalOptimizer::make(std::move(groups));
  return made ? "it was not refused" : made.error().text();
}

TEST(Lbfgs, WhatItCannotStepIsNamed) {
  const at::Tensor p = at::ones({2}).requires_grad_();
  const at::Tensor q = at::ones({2}, at::kDouble).requires_grad_();
  const at::Tensor complex = at::complex(at::ones({2}), at::ones({2})).requires_grad_();
  EXPECT_THAT(refusal({{{p}, LBFGS{}}, {{q}, LBFGS{}}}), HasSubstr("give it one group, here are 2"));
  EXPECT_THAT(refusal({{{p}, SGD{}}, {{q}, LBFGS{}}}), HasSubstr("give it one group, here are 2"));
  EXPECT_THAT(refusal({{{p, q}, LBFGS{}}}), HasSubstr("parameter 1 (Double [2]) has another dtype"));
  EXPECT_THAT(refusal({{{complex}, LBFGS{}}}), HasSubstr("which LBFGS cannot step"));
  EXPECT_THAT(refusal({{{p}, LBFGS{.lr = -1}}}), HasSubstr("LBFGS: lr is -1, it must be >= 0"));
  EXPECT_THAT(refusal({{{p}, LBFGS{.max_iter = 0}}}), HasSubstr("max_iter is 0, it must be >= 1"));
  EXPECT_THAT(refusal({{{p}, LBFGS{.max_eval = 0}}}), HasSubstr("max_eval is 0, it must be >= 1"));
  EXPECT_THAT(refusal({{{p}, LBFGS{.tolerance_grad = -1}}}), HasSubstr("tolerance_grad is -1"));
  EXPECT_THAT(refusal({{{p}, LBFGS{.tolerance_change = -1}}}), HasSubstr("tolerance_change is -1"));
  EXPECT_THAT(refusal({{{p}, LBFGS{.history_size = 0}}}), HasSubstr("history_size is 0"));

  LocalOptimizer optimizer = LocalOptimizer::make({{{p}, LBFGS{}}}).value();
  EXPECT_THAT(optimizer.step(Tensors{at::ones({2})}).error().text(), HasSubstr("pass a closure"));
  EXPECT_EQ(optimizer.add_param_group({{q}, SGD{}}).error().code(), Errc::bad_arguments);
  LocalOptimizer plain = LocalOptimizer::make({{{p}, SGD{}}}).value();
  EXPECT_EQ(plain.add_param_group({{q}, LBFGS{}}).error().code(), Errc::bad_arguments);
  EXPECT_THAT(plain.search(1, Tensors{at::ones({2})}).error().text(), HasSubstr("SGD is not searched for"));
}

TEST(LocalOptimizer, AClosureIsEvaluatedOnceByTheOtherAlgorithms) {
  const Tensors parameters{at::tensor({2.0, -1.0}).requires_grad_()};
  const Tensors copies = clone_all(parameters);
  LocalOptimizer optimizer = LocalOptimizer::make({{parameters, Adam{.lr = 0.1}}}).value();
  LocalOptimizer other = LocalOptimizer::make({{copies, Adam{.lr = 0.1}}}).value();
  int evaluations = 0;
  const double loss = optimizer
                          .step([&]() -> Result<LocalEvaluation> {
                            ++evaluations;
                            return evaluate(parameters, hills(parameters));
                          })
                          .value();
  const LocalEvaluation value = evaluate(copies, hills(copies));
  ASSERT_TRUE(other.step(value.gradients));
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(loss, value.loss);
  EXPECT_TRUE(same_bits(parameters, copies));
}

// ---- saved states

std::uint32_t version_of(const wire::Bytes& state) {
  std::uint32_t version = 0;
  std::memcpy(&version, state.data() + 8, sizeof version);
  return version;
}

class LbfgsState : public ::testing::TestWithParam<Search> {};
INSTANTIATE_TEST_SUITE_P(LineSearches, LbfgsState, ::testing::Values(Search::none, Search::strong_wolfe));

TEST_P(LbfgsState, OP5_TrainingGoesOnBitForBit) {
  Trial whole(GetParam());
  EXPECT_EQ(version_of(whole.optimizer.save().value()), 1U) << "nothing to remember yet";
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(whole.step());
  const wire::Bytes state = whole.optimizer.save().value();
  EXPECT_EQ(version_of(state), 4U);
  Trial resumed(GetParam());
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < 2; ++i) resumed.parameters[i].copy_(whole.parameters[i]);
  }
  ASSERT_TRUE(resumed.optimizer.load(state));
  EXPECT_EQ(resumed.optimizer.save().value(), state);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(whole.step().value(), resumed.step().value());
    EXPECT_TRUE(same_bits(whole.parameters, resumed.parameters));
  }
}

TEST_P(LbfgsState, OP1_TruncatedAndChangedBytesAreRefusedOrReadWithoutHarm) {
  Trial trial(GetParam());
  ASSERT_TRUE(trial.step());
  const wire::Bytes state = trial.optimizer.save().value();
  for (std::size_t size = 0; size < state.size(); ++size) {
    ASSERT_EQ(trial.optimizer.load(wire::ByteView(state).first(size)).error().code(), Errc::malformed_payload) << size;
  }
  EXPECT_EQ(trial.optimizer.save().value(), state);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < state.size(); ++at) {
    wire::Bytes changed = state;
    changed[at] ^= std::byte{0x80};
    if (!trial.optimizer.load(changed)) ++refused;
  }
  EXPECT_GT(refused, 60U);
}

TEST(LbfgsStates, OP3_AMemoryOfAnotherModelIsRefused) {
  Trial trial(Search::none);
  ASSERT_TRUE(trial.step());
  const wire::Bytes state = trial.optimizer.save().value();
  LocalOptimizer sgd = LocalOptimizer::make({{trial.parameters, SGD{}}}).value();
  EXPECT_THAT(sgd.load(state).error().text(), HasSubstr("stepped by LBFGS, here by SGD"));
  LocalOptimizer fewer = LocalOptimizer::make({{{trial.parameters[0]}, LBFGS{}}}).value();
  EXPECT_THAT(fewer.load(state).error().text(), HasSubstr("2 parameters, here are 1"));
}

TEST(LbfgsStates, HasPyTorchsNames) {
  Trial trial(Search::none);
  EXPECT_TRUE(trial.optimizer.state(0).empty());
  ASSERT_TRUE(trial.step());
  const auto state = trial.optimizer.state(0);
  EXPECT_EQ(state.at("d").sizes(), at::IntArrayRef({5}));
  EXPECT_EQ(state.at("prev_flat_grad").sizes(), at::IntArrayRef({5}));
  EXPECT_EQ(state.at("H_diag").dim(), 0);
  EXPECT_EQ(state.at("old_dirs").size(0), state.at("ro").size(0));
  EXPECT_EQ(state.at("old_stps").size(1), 5);
  EXPECT_TRUE(trial.optimizer.state(1).empty());
}

}  // namespace
}  // namespace caftan::optim::lbfgs_test
