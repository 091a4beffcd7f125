// Algorithms that torch::optim does not have, against the formulas of PyTorch's documentation in plain double
// arithmetic; algorithms of the user's; names of state tensors; groups that come later.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "caftan/optim/local_optimizer.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/tensor/operators.hpp"
#include "heavy_ball.hpp"

namespace caftan::optim::formulas_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

constexpr std::size_t kElements = 6;

/// One element of a parameter with the two numbers that an algorithm remembers of it.
struct Element {
  double value = 0;
  double first = 0;
  double second = 0;
};

at::Tensor make_tensor(const std::vector<double>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
  return tensor;
}

/// Returns a gradient that changes its sign now and then; that of the last element is always 0.
double gradient_at(int step, std::size_t element) {
  const auto e = static_cast<double>(element);
  return element + 1 == kElements ? 0 : std::sin(1.3 * step * (e + 1) + e) * (0.2 + e);
}

/// Steps a parameter 15 times by the algorithm, and each of its elements by `formula(element, gradient, step)`.
template <class Formula>
void expect_formula(const Algorithm& algorithm, Formula formula) {
  std::vector<Element> elements(kElements);
  std::vector<double> values;
  for (std::size_t e = 0; e < kElements; ++e) {
    elements[e].value = 0.7 * static_cast<double>(e) - 1.1;
    values.push_back(elements[e].value);
  }
  const at::Tensor parameter = make_tensor(values).requires_grad_();
  LocalOptimizer optimizer = LocalOptimizer::make({{{parameter}, algorithm}}).value();
  for (int step = 1; step <= 15; ++step) {
    std::vector<double> gradients;
    for (std::size_t e = 0; e < kElements; ++e) {
      gradients.push_back(gradient_at(step, e));
      formula(elements[e], gradients[e], step);
    }
    ASSERT_TRUE(optimizer.step(Tensors{make_tensor(gradients)}));
    for (std::size_t e = 0; e < kElements; ++e) {
      const double expected = elements[e].value;
      ASSERT_NEAR(parameter.const_data_ptr<double>()[e], expected, 1e-12 * std::max(1.0, std::abs(expected)))
          << name_of(algorithm) << " step " << step << " element " << e;
    }
  }
}

template <class Options>
double effective(const Options& options, const Element& element, double gradient) {
  return (options.maximize ? -gradient : gradient) + options.weight_decay * element.value;
}

TEST(Formulas, Row21_01_AdadeltaIsThatOfTheDocumentation) {
  for (const Adadelta& o : {Adadelta{}, Adadelta{.lr = 0.5, .rho = 0.6, .eps = 1e-3, .weight_decay = 0.1},
                            Adadelta{.rho = 0.95, .maximize = true}}) {
    expect_formula(o, [&o](Element& element, double gradient, int) {
      const double g = effective(o, element, gradient);
      double& v = element.first;
      double& u = element.second;
      v = v * o.rho + g * g * (1 - o.rho);
      const double delta = std::sqrt(u + o.eps) / std::sqrt(v + o.eps) * g;
      u = u * o.rho + delta * delta * (1 - o.rho);
      element.value -= o.lr * delta;
    });
  }
}

TEST(Formulas, Row21_01_AdamaxIsThatOfTheDocumentation) {
  for (const Adamax& o : {Adamax{}, Adamax{.lr = 0.1, .betas = {0.5, 0.7}, .eps = 1e-3, .weight_decay = 0.1},
                          Adamax{.lr = 0.05, .betas = {0.8, 0.9}, .maximize = true}}) {
    expect_formula(o, [&o](Element& element, double gradient, int step) {
      const double g = effective(o, element, gradient);
      double& m = element.first;
      double& u = element.second;
      m = o.betas.first * m + (1 - o.betas.first) * g;
      u = std::max(o.betas.second * u, std::abs(g) + o.eps);
      element.value -= o.lr / (1 - std::pow(o.betas.first, step)) * m / u;
    });
  }
}

TEST(Formulas, Row21_01_RpropIsThatOfTheDocumentation) {
  for (const Rprop& o : {Rprop{}, Rprop{.lr = 0.1, .etas = {0.3, 1.7}, .step_sizes = {0.04, 0.2}},
                         Rprop{.lr = 0.05, .maximize = true}}) {
    expect_formula(o, [&o](Element& element, double gradient, int step) {
      double g = o.maximize ? -gradient : gradient;
      double& previous = element.first;
      double& size = element.second;
      if (step == 1) size = o.lr;
      if (previous * g > 0) {
        size = std::min(size * o.etas.second, o.step_sizes.second);
      } else if (previous * g < 0) {
        size = std::max(size * o.etas.first, o.step_sizes.first);
        g = 0;
      }
      element.value -= g > 0 ? size : g < 0 ? -size : 0;
      previous = g;
    });
  }
}

TEST(Formulas, TheFirstStepSizeOfRpropIsTheRateOfThatStep) {
  const at::Tensor p = at::ones({2}).requires_grad_();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p}, Rprop{.lr = 0.5}}}).value();
  const Tensors gradients{at::ones({2})};
  ASSERT_TRUE(optimizer.prepare(gradients));
  optimizer.set_lr(0, 0.25);
  const std::size_t all[] = {0};
  ASSERT_TRUE(optimizer.update(all, gradients));
  EXPECT_TRUE(at::equal(p.detach(), at::ones({2}) * 0.75));
}

// ---- names of state tensors

TEST(StateSlots, HaveTheNamesOfPyTorchsStateDict) {
  const auto state_of = [](const Algorithm& algorithm) {
    LocalOptimizer optimizer = LocalOptimizer::make({{{at::ones({2}).requires_grad_()}, algorithm}}).value();
    EXPECT_TRUE(optimizer.state(0).empty()) << "before the first step";
    EXPECT_TRUE(optimizer.step(Tensors{at::ones({2})}));
    std::vector<std::string> names;
    for (const auto& [name, tensor] : optimizer.state(0)) {
      EXPECT_TRUE(tensor.defined()) << name;
      names.push_back(name);
    }
    return names;
  };
  EXPECT_TRUE(state_of(SGD{}).empty());
  EXPECT_THAT(state_of(SGD{.momentum = 0.9}), ElementsAre("momentum_buffer"));
  EXPECT_THAT(state_of(Adam{}), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(state_of(AdamW{.amsgrad = true}), ElementsAre("exp_avg", "exp_avg_sq", "max_exp_avg_sq"));
  EXPECT_THAT(state_of(Adagrad{}), ElementsAre("sum"));
  EXPECT_THAT(state_of(Adadelta{}), ElementsAre("acc_delta", "square_avg"));
  EXPECT_THAT(state_of(RMSprop{}), ElementsAre("square_avg"));
  EXPECT_THAT(state_of(RMSprop{.momentum = 0.9, .centered = true}),
              ElementsAre("grad_avg", "momentum_buffer", "square_avg"));
  EXPECT_THAT(state_of(Rprop{}), ElementsAre("prev", "step_size"));
  EXPECT_THAT(state_of(Adamax{}), ElementsAre("exp_avg", "exp_inf"));
  EXPECT_THAT(state_of(Custom{.name = "heavy_ball", .code = std::make_shared<HeavyBall>()}), ElementsAre("m"));
}

// ---- algorithms of the user's

TEST(CustomAlgorithms, StepBySgdsFormulaEqualSgdBitForBit) {
  const at::Tensor p = at::randn({3, 4}).requires_grad_();
  const at::Tensor q = p.detach().clone().requires_grad_();
  LocalOptimizer custom =
      LocalOptimizer::make({{{p}, Custom{.name = "heavy_ball", .lr = 0.1, .code = std::make_shared<HeavyBall>()}}})
          .value();
  LocalOptimizer sgd = LocalOptimizer::make({{{q}, SGD{.lr = 0.1, .momentum = 0.9}}}).value();
  for (int step = 0; step < 10; ++step) {
    const Tensors gradients{at::randn({3, 4})};
    const auto before = p._version();
    ASSERT_TRUE(custom.step(gradients));
    ASSERT_TRUE(sgd.step(gradients));
    EXPECT_TRUE(at::equal(p.detach(), q.detach())) << step;
    EXPECT_GT(p._version(), before);
  }
}

Error refusal(const Custom& custom) {
  const auto made = LocalOptimizer::make({{{at::ones({2}).requires_grad_()}, custom}});
  return made ? Error() : made.error();
}

/// Has as many slots as it is made with, and fails in every step.
class Failing final : public CustomAlgorithm {
 public:
  explicit Failing(std::size_t slots) : slots_(slots, "s") {}
  std::vector<std::string> slots() const override { return slots_; }
  Result<void> check(const Custom& options) const override {
    if (options.options.contains("throw")) throw std::runtime_error("no such option");
    return {};
  }
  void step(const Custom&, const CustomStep&) const override { throw std::runtime_error("the sun shone"); }

 private:
  std::vector<std::string> slots_;
};

TEST(CustomAlgorithms, WhatIsWrongWithThemIsNamedBeforeAnyStep) {
  const auto code = std::make_shared<HeavyBall>();
  EXPECT_THAT(refusal({.name = "heavy_ball"}).text(), HasSubstr("the algorithm heavy_ball has no code"));
  EXPECT_THAT(refusal({.code = code}).text(), HasSubstr("without a name"));
  EXPECT_THAT(refusal({.name = "h", .lr = -1, .code = code}).text(), HasSubstr("h: lr is -1, it must be >= 0"));
  EXPECT_THAT(refusal({.name = "h", .options = {{"beta", 2}}, .code = code}).text(), HasSubstr("beta is 2"));
  EXPECT_EQ(refusal({.name = "three", .code = std::make_shared<Failing>(3)}).code(), Errc::ok);
  EXPECT_THAT(refusal({.name = "four", .code = std::make_shared<Failing>(4)}).text(),
              HasSubstr("it has 4 state slots, a parameter may have 3"));
  const Error thrown = refusal({.name = "f", .options = {{"throw", 1}}, .code = std::make_shared<Failing>(0)});
  EXPECT_EQ(thrown.code(), Errc::remote_exception);
  EXPECT_THAT(thrown.text(), HasSubstr("no such option"));
}

TEST(CustomAlgorithms, Row21_03_WhatTheirStepThrowsIsTheError) {
  LocalOptimizer optimizer = LocalOptimizer::make({{{at::ones({2}).requires_grad_()},
                                                    Custom{.name = "f", .code = std::make_shared<Failing>(1)}}})
                                 .value();
  EXPECT_EQ(optimizer.step(Tensors{at::ones({2}).to_sparse()}).error().code(), Errc::unsupported);
  const auto stepped = optimizer.step(Tensors{at::ones({2})});
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().code(), Errc::remote_exception);
  EXPECT_THAT(stepped.error().text(), HasSubstr("the sun shone"));
}

TEST(CustomAlgorithms, AreFoundByTheirNameInTheRegistry) {
  Registry registry;
  add_algorithm(registry, "heavy_ball", std::make_shared<HeavyBall>());
  ASSERT_TRUE(registry.freeze());
  Algorithm known = Custom{.name = "heavy_ball"};
  ASSERT_TRUE(resolve(known, registry));
  EXPECT_NE(std::get<Custom>(known).code, nullptr);
  Algorithm unknown = Custom{.name = "heavy_bell"};
  const Error error = resolve(unknown, registry).error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("heavy_bell is not registered here (registered: heavy_ball)"));
  Algorithm built_in = SGD{};
  EXPECT_TRUE(resolve(built_in, registry));
}

TEST(CustomAlgorithms, ANameTwiceOrWithoutCodeFailsTheStart) {
  Registry registry;
  add_algorithm(registry, "a", std::make_shared<HeavyBall>());
  add_algorithm(registry, "a", std::make_shared<HeavyBall>());
  add_algorithm(registry, "b", nullptr);
  const Error error = registry.freeze().error();
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_THAT(error.text(), HasSubstr("'caftan.algorithm.a' is registered twice"));
  EXPECT_THAT(error.text(), HasSubstr("'caftan.algorithm.b' was registered without its code"));
}

// ---- groups that come later

TEST(LaterGroups, AreSteppedWithTheirOptionsAndSaved) {
  const at::Tensor p = at::ones({2}).requires_grad_();
  const at::Tensor q = at::ones({3}).requires_grad_();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p}, SGD{.lr = 1}}}).value();
  EXPECT_EQ(optimizer.initial_lrs(), (std::vector<double>{1}));
  ASSERT_TRUE(optimizer.step(Tensors{at::ones({2})}));
  ASSERT_TRUE(optimizer.add_param_group({{q}, SGD{.lr = 0.5, .momentum = 0.9}}));
  EXPECT_EQ(optimizer.groups(), 2U);
  EXPECT_EQ(optimizer.initial_lrs(), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(*optimizer.step(Tensors{at::ones({2}), at::ones({3})}), 2U);
  EXPECT_TRUE(at::equal(p.detach(), at::ones({2}) * -1));
  EXPECT_TRUE(at::equal(q.detach(), at::ones({3}) * 0.5));
  const wire::Bytes state = optimizer.save().value();
  LocalOptimizer resumed = LocalOptimizer::make({{{p}, SGD{.lr = 1}}, {{q}, SGD{.lr = 0.5, .momentum = 0.9}}}).value();
  ASSERT_TRUE(resumed.load(state));
  EXPECT_EQ(resumed.save().value(), state);
}

TEST(LaterGroups, ThatAreRefusedChangeNothing) {
  const at::Tensor p = at::ones({2}).requires_grad_();
  const at::Tensor q = at::ones({3}).requires_grad_();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p}, SGD{.lr = 1}}}).value();
  EXPECT_THAT(optimizer.add_param_group({}).error().text(), HasSubstr("a group without a parameter"));
  EXPECT_THAT(optimizer.add_param_group({{q, p}, SGD{}}).error().text(),
              HasSubstr("parameter 2 (Float [2]) is the same tensor as parameter 0"));
  EXPECT_EQ(optimizer.add_param_group({{q}, SGD{.lr = -1}}).error().code(), Errc::bad_arguments);
  EXPECT_EQ(optimizer.groups(), 1U);
  EXPECT_EQ(optimizer.parameters().size(), 1U);
  EXPECT_TRUE(optimizer.add_param_group({{q}, SGD{}}));
}

}  // namespace
}  // namespace caftan::optim::formulas_test
