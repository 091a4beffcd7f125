#include "caftan/optim/local_optimizer.hpp"

#include <ATen/ops/_lazy_clone.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caftan/tensor/operators.hpp"

namespace caftan::optim::local_optimizer_test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

at::Tensor parameter(at::IntArrayRef sizes = {2}) { return at::ones(sizes).requires_grad_(); }

Error refusal(std::vector<ParameterGroup> groups) {
  auto made = LocalOptimizer::make(std::move(groups));
  return made ? Error() : made.error();
}

// ---- what cannot be stepped

TEST(LocalOptimizer, RefusesWhatIsNoParameterAndNamesIt) {
  struct Case {
    at::Tensor tensor;
    Algorithm algorithm;
    const char* text;
  };
  const at::Tensor leaf = parameter();
  at::Tensor inference;
  {
    const c10::InferenceMode mode;
    inference = at::ones({2});
  }
  const Case cases[] = {
      {at::Tensor(), SGD{}, "undefined"},     {at::ones({2}), SGD{}, "needs no gradient"},
      {leaf * 2, SGD{}, "not a leaf"},        {at::arange(3), SGD{}, "not of a floating dtype"},
      {inference, SGD{}, "inference tensor"},
  };
  for (const Case& c : cases) {
    const Error error = refusal({{{parameter(), c.tensor}, c.algorithm}});
    EXPECT_EQ(error.code(), Errc::bad_arguments) << c.text;
    EXPECT_THAT(error.text(), HasSubstr("parameter 1"));
    EXPECT_THAT(error.text(), HasSubstr(c.text));
  }
  const at::Tensor complex = at::complex(at::ones({2}), at::ones({2})).requires_grad_();
  EXPECT_EQ(refusal({{{complex}, Adam{}}}).code(), Errc::unsupported);
  EXPECT_EQ(refusal({{{complex}, SGD{}}}).code(), Errc::ok);
  EXPECT_EQ(refusal({}).code(), Errc::bad_arguments);
  EXPECT_EQ(refusal({{{}, SGD{}}}).code(), Errc::bad_arguments);
}

TEST(LocalOptimizer, RefusesTheSameParameterTwiceAlsoInTwoGroups) {
  const at::Tensor p = parameter();
  const at::Tensor q = parameter();
  EXPECT_EQ(refusal({{{p, q, p}, SGD{}}}).code(), Errc::bad_arguments);
  const Error error = refusal({{{q, p}, SGD{}}, {{p}, Adam{}}});
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("parameter 2"));
  EXPECT_THAT(error.text(), HasSubstr("the same tensor as parameter 1"));
}

TEST(LocalOptimizer, RefusesOptionsOutOfRangeAndNamesThem) {
  const std::pair<Algorithm, const char*> cases[] = {
      {SGD{.lr = -1}, "SGD: lr is -1, it must be >= 0"},
      {SGD{.momentum = -0.1}, "SGD: momentum is -0.1, it must be >= 0"},
      {SGD{.weight_decay = -1}, "SGD: weight_decay is -1, it must be >= 0"},
      {SGD{.dampening = std::numeric_limits<double>::infinity()}, "dampening is inf, it must be a finite number"},
      {SGD{.nesterov = true}, "nesterov"},
      {SGD{.momentum = 0.9, .dampening = 0.1, .nesterov = true}, "nesterov needs momentum > 0 and dampening 0"},
      {Adam{.lr = std::numeric_limits<double>::quiet_NaN()}, "Adam: lr is nan, it must be >= 0"},
      {Adam{.betas = {1.0, 0.9}}, "Adam: betas[0] is 1, it must be in [0, 1)"},
      {AdamW{.betas = {0.9, -0.1}}, "AdamW: betas[1] is -0.1, it must be in [0, 1)"},
      {AdamW{.eps = -1}, "AdamW: eps is -1, it must be >= 0"},
      {Adagrad{.lr_decay = -0.5}, "Adagrad: lr_decay is -0.5, it must be >= 0"},
      {Adagrad{.initial_accumulator_value = -1}, "initial_accumulator_value is -1, it must be >= 0"},
      {Adagrad{.eps = -1}, "Adagrad: eps is -1, it must be >= 0"},
      {Adadelta{.rho = 1.5}, "Adadelta: rho is 1.5, it must be in [0, 1]"},
      {Adadelta{.weight_decay = -1}, "Adadelta: weight_decay is -1, it must be >= 0"},
      {RMSprop{.alpha = -0.5}, "RMSprop: alpha is -0.5, it must be in [0, 1]"},
      {RMSprop{.momentum = -1}, "RMSprop: momentum is -1, it must be >= 0"},
      {Rprop{.etas = {0, 1.2}}, "Rprop: etas[0] is 0, it must be in (0, 1)"},
      {Rprop{.etas = {0.5, 1}}, "Rprop: etas[1] is 1, it must be > 1"},
      {Rprop{.step_sizes = {2, 1}}, "Rprop: step_sizes[1] is 1, it must be >= step_sizes[0], which is 2"},
      {Adamax{.betas = {0.9, 1}}, "Adamax: betas[1] is 1, it must be in [0, 1)"},
      {Adamax{.lr = -1}, "Adamax: lr is -1, it must be >= 0"},
  };
  for (const auto& [algorithm, option] : cases) {
    const Error error = refusal({{{parameter()}, algorithm}});
    EXPECT_EQ(error.code(), Errc::bad_arguments) << option;
    EXPECT_THAT(error.text(), HasSubstr(option));
  }
}

TEST(LocalOptimizer, ARateThatIsSetOutOfItsRangeRefusesTheStep) {
  const at::Tensor p = parameter();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p}, SGD{.lr = 1}}}).value();
  for (const double lr : {-0.5, std::numeric_limits<double>::quiet_NaN()}) {
    optimizer.set_lr(0, lr);
    const Error error = optimizer.step(Tensors{at::ones({2})}).error();
    EXPECT_EQ(error.code(), Errc::bad_arguments);
    EXPECT_THAT(error.text(), HasSubstr("it must be >= 0"));
  }
  EXPECT_TRUE(p.equal(at::ones({2})));
}

// ---- what is no gradient

TEST(LocalOptimizer, OP4_RefusesGradientsThatDoNotFitAndChangesNothing) {
  const at::Tensor p = parameter({2, 3});
  const at::Tensor q = parameter({2});
  LocalOptimizer optimizer = LocalOptimizer::make({{{q, p}, SGD{.lr = 1}}}).value();
  for (const at::Tensor& wrong : {at::ones({3, 2}), at::ones({2, 3}, at::kDouble), at::ones({2, 3}).to_sparse_csr()}) {
    const Error error = optimizer.step(Tensors{at::ones({2}), wrong}).error();
    EXPECT_EQ(error.code(), Errc::bad_arguments);
    EXPECT_THAT(error.text(), HasSubstr("parameter 1"));
  }
  EXPECT_EQ(optimizer.step(Tensors{at::ones({2})}).error().code(), Errc::bad_arguments);
  EXPECT_TRUE(p.equal(at::ones({2, 3})));
  EXPECT_TRUE(q.equal(at::ones({2}))) << "the one that would fit is not stepped either";
}

TEST(LocalOptimizer, RefusesSparseGradientsWhereTheArithmeticTakesNone) {
  const at::Tensor sparse = at::ones({2}).to_sparse();
  for (const Algorithm& algorithm : {Algorithm(Adam{}), Algorithm(AdamW{}), Algorithm(SGD{.weight_decay = 0.1}),
                                     Algorithm(Adagrad{.weight_decay = 0.1}), Algorithm(Adadelta{}),
                                     Algorithm(RMSprop{}), Algorithm(Rprop{}), Algorithm(Adamax{})}) {
    LocalOptimizer optimizer = LocalOptimizer::make({{{parameter()}, algorithm}}).value();
    EXPECT_EQ(optimizer.step(Tensors{sparse}).error().code(), Errc::unsupported) << name_of(algorithm);
  }
  const SGD with_momentum{.lr = 1, .momentum = 0.9, .nesterov = true};
  LocalOptimizer sparse_first = LocalOptimizer::make({{{parameter()}, with_momentum}}).value();
  EXPECT_TRUE(sparse_first.step(Tensors{sparse}));
  EXPECT_EQ(sparse_first.step(Tensors{at::ones({2})}).error().code(), Errc::unsupported);
  LocalOptimizer dense_first = LocalOptimizer::make({{{parameter()}, with_momentum}}).value();
  EXPECT_TRUE(dense_first.step(Tensors{at::ones({2})}));
  EXPECT_EQ(dense_first.step(Tensors{sparse}).error().code(), Errc::unsupported);
}

TEST(LocalOptimizer, APreparedStepThatIsGivenUpLeavesNoTrace) {
  const at::Tensor p = parameter();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p}, SGD{.lr = 1, .momentum = 0.9, .nesterov = true}}}).value();
  EXPECT_TRUE(optimizer.prepare(Tensors{at::ones({2})}));
  EXPECT_TRUE(optimizer.prepare(Tensors{at::ones({2}).to_sparse()}));
  EXPECT_TRUE(p.equal(at::ones({2})));
  EXPECT_TRUE(optimizer.step(Tensors{at::tensor({1.0F, 0.0F})}));
  EXPECT_TRUE(p.equal(at::tensor({1.0F - 1.9F, 1.0F})));
}

// ---- what a step does beside the arithmetic

TEST(LocalOptimizer, Row21_02_ParametersWithoutGradientAreLeftAlone) {
  const at::Tensor p = parameter();
  const at::Tensor q = parameter();
  const auto before = p._version();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p, q}, SGD{.lr = 1, .momentum = 0.9}}}).value();
  EXPECT_EQ(*optimizer.step(Tensors{at::Tensor(), at::ones({2})}), 1U);
  EXPECT_TRUE(p.equal(at::ones({2})));
  EXPECT_TRUE(q.equal(at::zeros({2})));
  EXPECT_EQ(p._version(), before);
  EXPECT_GT(q._version(), before);
  EXPECT_FALSE(p.grad().defined()) << "gradients do not go through .grad";
}

TEST(LocalOptimizer, OP6_AStepRaisesTheVersionSoThatAnOlderGraphIsAnError) {
  for (const Algorithm& algorithm :
       {Algorithm(SGD{}), Algorithm(SGD{.momentum = 0.9}), Algorithm(Adam{}), Algorithm(Adam{.fused = true}),
        Algorithm(AdamW{}), Algorithm(Adagrad{}), Algorithm(Adadelta{}), Algorithm(RMSprop{}), Algorithm(Rprop{}),
        Algorithm(Adamax{})}) {
    const at::Tensor p = parameter();
    LocalOptimizer optimizer = LocalOptimizer::make({{{p}, algorithm}}).value();
    const at::Tensor loss = (p * p).sum();
    const auto before = p._version();
    ASSERT_TRUE(optimizer.step(Tensors{at::ones({2})}));
    EXPECT_GT(p._version(), before) << name_of(algorithm);
    EXPECT_ANY_THROW(loss.backward()) << name_of(algorithm);
  }
}

TEST(LocalOptimizer, ALazyCloneKeepsTheValuesFromBeforeTheStep) {
  for (const Algorithm& algorithm : {Algorithm(SGD{.lr = 1}), Algorithm(Adam{}), Algorithm(Adam{.fused = true})}) {
    const at::Tensor p = parameter();
    const at::Tensor before = at::_lazy_clone(p.detach());
    LocalOptimizer optimizer = LocalOptimizer::make({{{p}, algorithm}}).value();
    ASSERT_TRUE(optimizer.step(Tensors{at::ones({2})}));
    EXPECT_TRUE(before.equal(at::ones({2}))) << name_of(algorithm);
    EXPECT_FALSE(p.equal(at::ones({2}))) << name_of(algorithm);
  }
}

TEST(LocalOptimizer, GradientsAreNotModified) {
  const at::Tensor gradient = at::ones({2});
  for (const Algorithm& algorithm :
       {Algorithm(SGD{.momentum = 0.9, .weight_decay = 0.1, .maximize = true}),
        Algorithm(Adam{.weight_decay = 0.1, .fused = true}), Algorithm(AdamW{}), Algorithm(Adagrad{}),
        Algorithm(Adadelta{}), Algorithm(RMSprop{.momentum = 0.9}), Algorithm(Rprop{}), Algorithm(Adamax{})}) {
    LocalOptimizer optimizer = LocalOptimizer::make({{{parameter()}, algorithm}}).value();
    ASSERT_TRUE(optimizer.step(Tensors{gradient}));
    ASSERT_TRUE(optimizer.step(Tensors{gradient}));
    EXPECT_TRUE(gradient.equal(at::ones({2}))) << name_of(algorithm);
  }
}

TEST(LocalOptimizer, EachGroupHasItsOptions) {
  const at::Tensor p = parameter();
  const at::Tensor q = parameter();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p}, SGD{.lr = 1}}, {{q}, SGD{.lr = 0.5}}}).value();
  optimizer.set_lr(1, 0.25);
  EXPECT_EQ(optimizer.lr(0), 1);
  ASSERT_TRUE(optimizer.step(Tensors{at::ones({2}), at::ones({2})}));
  EXPECT_TRUE(p.equal(at::zeros({2})));
  EXPECT_TRUE(q.equal(at::ones({2}) * 0.75));
}

TEST(LocalOptimizer, OnlyTheChosenParametersAreUpdated) {
  const at::Tensor p = parameter();
  const at::Tensor q = parameter();
  LocalOptimizer optimizer = LocalOptimizer::make({{{p, q}, SGD{.lr = 1}}}).value();
  const Tensors gradients{at::ones({2}), at::ones({2})};
  ASSERT_TRUE(optimizer.prepare(gradients));
  const std::size_t second[] = {1};
  ASSERT_TRUE(optimizer.update(second, gradients));
  EXPECT_TRUE(p.equal(at::ones({2})));
  EXPECT_TRUE(q.equal(at::zeros({2})));
}

}  // namespace
}  // namespace caftan::optim::local_optimizer_test
