// Steps against torch::optim's own, bit for bit, over random options, shapes and gradients (conformance 21.01, 21.02).
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <iterator>
#include <random>

#include "caftan/optim/local_optimizer.hpp"

namespace caftan::optim::parity_test {
namespace {

using Random = std::mt19937_64;
using Tensors = std::vector<at::Tensor>;

double pick(Random& random, std::initializer_list<double> values) { return values.begin()[random() % values.size()]; }
bool flip(Random& random) { return random() % 2 == 0; }

/// A shape of up to 3 dimensions, empty and odd ones among them, sometimes transposed.
at::Tensor make_parameter(Random& random, at::ScalarType dtype) {
  std::vector<std::int64_t> sizes(random() % 4);
  for (std::int64_t& size : sizes) size = static_cast<std::int64_t>(pick(random, {1, 2, 3, 7, 16, 17, 33}));
  if (random() % 20 == 0) sizes.assign(1, 0);
  at::Tensor parameter = at::randn(sizes, dtype);
  if (parameter.dim() == 2 && flip(random)) parameter = parameter.t();
  return parameter.detach().requires_grad_();
}

/// Returns a random gradient in the layout of the parameter, transposed or expanded; sometimes an undefined one.
at::Tensor make_gradient(Random& random, const at::Tensor& parameter) {
  if (random() % 5 == 0) return {};
  const at::TensorOptions options = parameter.options().requires_grad(false);
  if (parameter.dim() == 2 && flip(random)) {
    return at::randn({parameter.size(1), parameter.size(0)}, options).t();
  }
  if (parameter.dim() > 0 && random() % 4 == 0) return at::randn({1}, options).expand(parameter.sizes());
  return at::randn(parameter.sizes(), options);
}

Tensors clone_all(const Tensors& parameters) {
  Tensors copies;
  for (const at::Tensor& p : parameters) copies.push_back(p.detach().clone().requires_grad_());
  return copies;
}

/// Returns whether all elements are the same; any two that are no numbers are.
bool same_bits(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::allclose(a[i].detach(), b[i].detach(), 0, 0, true)) return false;
  }
  return true;
}

void step_torch(torch::optim::Optimizer& optimizer, const Tensors& parameters, const Tensors& gradients) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].mutable_grad() = gradients[i];
  }
  optimizer.step();
}

/// Runs our optimizer and torch's for some steps and compares the parameters. To test `maximize`, torch's optimizer
/// gets the negative gradient instead.
void expect_equal(const Algorithm& algorithm, bool maximize, const Tensors& parameters, torch::optim::Optimizer& torch,
                  const Tensors& copies, Random& random) {
  LocalOptimizer ours = LocalOptimizer::make({{parameters, algorithm}}).value();
  for (int step = 0; step < 12; ++step) {
    Tensors gradients;
    Tensors opposite;
    for (const at::Tensor& p : parameters) {
      gradients.push_back(make_gradient(random, p));
      opposite.push_back(maximize && gradients.back().defined() ? gradients.back().neg() : gradients.back());
    }
    if (step == 6) {
      ours.set_lr(0, 0.007);
      torch.param_groups()[0].options().set_lr(0.007);
    }
    ASSERT_TRUE(ours.step(gradients));
    step_torch(torch, copies, opposite);
    ASSERT_TRUE(same_bits(parameters, copies)) << "step " << step;
  }
}

class Parity : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Parity() { at::manual_seed(GetParam()); }

  Tensors make_parameters() {
    const at::ScalarType dtypes[] = {at::kDouble, at::kFloat, at::kFloat, at::kBFloat16};
    const at::ScalarType dtype = dtypes[random_() % std::size(dtypes)];
    Tensors parameters;
    for (std::size_t i = 0; i < 1 + random_() % 5; ++i) parameters.push_back(make_parameter(random_, dtype));
    return parameters;
  }

  Random random_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Settings, Parity, ::testing::Range<std::uint64_t>(1, 101));

TEST_P(Parity, Row21_01_SgdEqualsTorchBitForBit) {
  SGD sgd{.lr = pick(random_, {0.1, 0.03, 1e-3}),
          .momentum = pick(random_, {0, 0.9, 0.5}),
          .dampening = pick(random_, {0, 0.1}),
          .weight_decay = pick(random_, {0, 0.01}),
          .maximize = flip(random_)};
  if (sgd.momentum != 0 && flip(random_)) {
    sgd.dampening = 0;
    sgd.nesterov = true;
  }
  const Tensors parameters = make_parameters();
  const Tensors copies = clone_all(parameters);
  torch::optim::SGD torch(copies, torch::optim::SGDOptions(sgd.lr)
                                      .momentum(sgd.momentum)
                                      .dampening(sgd.dampening)
                                      .weight_decay(sgd.weight_decay)
                                      .nesterov(sgd.nesterov));
  expect_equal(sgd, sgd.maximize, parameters, torch, copies, random_);
}

template <class Torch, class TorchOptions, class Ours>
void check_adam(Random& random, const Tensors& parameters) {
  const Ours adam{.lr = pick(random, {0.1, 2e-3}),
                  .betas = {pick(random, {0.9, 0.5, 0}), pick(random, {0.999, 0.9})},
                  .eps = pick(random, {1e-8, 1e-3}),
                  .weight_decay = pick(random, {0, 0.01}),
                  .amsgrad = flip(random),
                  .maximize = flip(random)};
  const Tensors copies = clone_all(parameters);
  Torch torch(copies, TorchOptions(adam.lr)
                          .betas({adam.betas.first, adam.betas.second})
                          .eps(adam.eps)
                          .weight_decay(adam.weight_decay)
                          .amsgrad(adam.amsgrad));
  expect_equal(adam, adam.maximize, parameters, torch, copies, random);
}

TEST_P(Parity, Row21_01_AdamEqualsTorchBitForBit) {
  check_adam<torch::optim::Adam, torch::optim::AdamOptions, Adam>(random_, make_parameters());
}

TEST_P(Parity, Row21_01_AdamWEqualsTorchBitForBit) {
  check_adam<torch::optim::AdamW, torch::optim::AdamWOptions, AdamW>(random_, make_parameters());
}

TEST_P(Parity, Row21_01_AdagradEqualsTorchBitForBit) {
  const Adagrad adagrad{.lr = pick(random_, {0.1, 0.01}),
                        .lr_decay = pick(random_, {0, 0.05}),
                        .weight_decay = pick(random_, {0, 0.01}),
                        .initial_accumulator_value = pick(random_, {0, 0.3}),
                        .eps = pick(random_, {1e-10, 1e-3}),
                        .maximize = flip(random_)};
  const Tensors parameters = make_parameters();
  const Tensors copies = clone_all(parameters);
  torch::optim::Adagrad torch(copies, torch::optim::AdagradOptions(adagrad.lr)
                                          .lr_decay(adagrad.lr_decay)
                                          .weight_decay(adagrad.weight_decay)
                                          .initial_accumulator_value(adagrad.initial_accumulator_value)
                                          .eps(adagrad.eps));
  expect_equal(adagrad, adagrad.maximize, parameters, torch, copies, random_);
}

TEST_P(Parity, Row21_01_RMSpropEqualsTorchBitForBit) {
  const RMSprop rmsprop{.lr = pick(random_, {0.1, 0.01}),
                        .alpha = pick(random_, {0.99, 0.5}),
                        .eps = pick(random_, {1e-8, 1e-3}),
                        .weight_decay = pick(random_, {0, 0.01}),
                        .momentum = pick(random_, {0, 0.9}),
                        .centered = flip(random_),
                        .maximize = flip(random_)};
  const Tensors parameters = make_parameters();
  const Tensors copies = clone_all(parameters);
  torch::optim::RMSprop torch(copies, torch::optim::RMSpropOptions(rmsprop.lr)
                                          .alpha(rmsprop.alpha)
                                          .eps(rmsprop.eps)
                                          .weight_decay(rmsprop.weight_decay)
                                          .momentum(rmsprop.momentum)
                                          .centered(rmsprop.centered));
  expect_equal(rmsprop, rmsprop.maximize, parameters, torch, copies, random_);
}

/// Runs our optimizer and torch's over momenta that change from step to step.
template <class TorchOptions>
void expect_equal_over_momenta(const Algorithm& algorithm, const Tensors& parameters, torch::optim::Optimizer& torch,
                               const Tensors& copies, const std::vector<double>& momenta, Random& random) {
  LocalOptimizer ours = LocalOptimizer::make({{parameters, algorithm}}).value();
  for (std::size_t step = 0; step < momenta.size(); ++step) {
    Tensors gradients;
    for (const at::Tensor& p : parameters) gradients.push_back(make_gradient(random, p));
    ours.set_momentum(0, momenta[step]);
    auto& options = static_cast<TorchOptions&>(torch.param_groups()[0].options());
    if constexpr (requires { options.momentum(0.5); }) {
      options.momentum(momenta[step]);
    } else {
      options.betas({momenta[step], std::get<1>(options.betas())});
    }
    ASSERT_TRUE(ours.step(gradients));
    step_torch(torch, copies, gradients);
    ASSERT_TRUE(same_bits(parameters, copies)) << "step " << step;
  }
}

TEST_P(Parity, MomentaThatChangeEqualTorchBitForBit) {
  const Tensors parameters = make_parameters();
  const Tensors copies = clone_all(parameters);
  const bool nesterov = flip(random_);
  const std::vector<double> falling{0.9, 0.85, 0.7, 0.5, 0.6, 0.8, 0.9};
  const std::vector<double> vanishing{0, 0, 0.9, 0.8, 0, 0.5, 0.9};
  switch (random_() % 3) {
    case 0: {
      torch::optim::SGD torch(copies, torch::optim::SGDOptions(0.1).momentum(0.5).nesterov(nesterov));
      expect_equal_over_momenta<torch::optim::SGDOptions>(optim::SGD{.lr = 0.1, .momentum = 0.5, .nesterov = nesterov},
                                                          parameters, torch, copies, nesterov ? falling : vanishing,
                                                          random_);
      break;
    }
    case 1: {
      torch::optim::RMSprop torch(copies, torch::optim::RMSpropOptions(0.1).momentum(0.5));
      expect_equal_over_momenta<torch::optim::RMSpropOptions>(optim::RMSprop{.lr = 0.1, .momentum = 0.5}, parameters,
                                                              torch, copies, falling, random_);
      break;
    }
    default: {
      torch::optim::Adam torch(copies, torch::optim::AdamOptions(0.1));
      expect_equal_over_momenta<torch::optim::AdamOptions>(optim::Adam{.lr = 0.1}, parameters, torch, copies, falling,
                                                           random_);
    }
  }
}

/// Runs an algorithm with and without `fused` for 20 steps and returns the largest distance of any element.
template <class Options>
float fused_distance(Options options, Random& random) {
  Tensors parameters;
  for (std::size_t i = 0; i < 3; ++i) parameters.push_back(make_parameter(random, at::kFloat));
  const Tensors copies = clone_all(parameters);
  options.fused = false;
  LocalOptimizer exact = LocalOptimizer::make({{parameters, options}}).value();
  options.fused = true;
  LocalOptimizer fused = LocalOptimizer::make({{copies, options}}).value();
  for (int step = 0; step < 20; ++step) {
    Tensors gradients;
    for (const at::Tensor& p : parameters) gradients.push_back(make_gradient(random, p));
    EXPECT_TRUE(exact.step(gradients));
    EXPECT_TRUE(fused.step(gradients));
  }
  float largest = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor distance = (parameters[i].detach() - copies[i].detach()).abs();
    if (distance.numel() > 0) largest = std::max(largest, distance.max().item<float>());
  }
  return largest;
}

TEST_P(Parity, FusedKernelsStayWithinTheirDocumentedDistance) {
  const double decay = pick(random_, {0, 0.01});
  const double momentum = pick(random_, {0, 0.9});
  const bool maximize = flip(random_);
  EXPECT_LE(fused_distance(SGD{.lr = 0.01,
                               .momentum = momentum,
                               .weight_decay = decay,
                               .nesterov = momentum != 0 && flip(random_),
                               .maximize = maximize},
                           random_),
            1e-6F);
  EXPECT_LE(
      fused_distance(Adam{.lr = 2e-3, .weight_decay = decay, .amsgrad = flip(random_), .maximize = maximize}, random_),
      1e-6F);
  EXPECT_LE(fused_distance(AdamW{.lr = 2e-3, .amsgrad = flip(random_), .maximize = maximize}, random_), 1e-6F);
}

/// A gradient of 3 of the 6 rows, one of them twice.
at::Tensor sparse_gradient(std::int64_t step) {
  const at::Tensor rows = at::tensor({step % 6, (2 * step) % 6, step % 6}, at::kLong).view({1, 3});
  return at::sparse_coo_tensor(rows, at::randn({3, 3}), {6, 3});
}

TEST(SparseParity, AdagradEqualsTorchBitForBit) {
  const Tensors parameters{at::randn({6, 3}).requires_grad_()};
  const Tensors copies = clone_all(parameters);
  LocalOptimizer ours = LocalOptimizer::make({{parameters, Adagrad{.lr = 0.1, .lr_decay = 0.05}}}).value();
  torch::optim::Adagrad torch(copies, torch::optim::AdagradOptions(0.1).lr_decay(0.05));
  for (std::int64_t step = 0; step < 10; ++step) {
    const Tensors gradients{step == 5 ? at::randn({6, 3}) : sparse_gradient(step)};
    ASSERT_TRUE(ours.step(gradients));
    step_torch(torch, copies, gradients);
    ASSERT_TRUE(same_bits(parameters, copies)) << "step " << step;
  }
}

TEST(SparseParity, SgdEqualsTorchBitForBit) {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      if (nesterov && momentum == 0) continue;
      const Tensors parameters{at::randn({6, 3}).requires_grad_()};
      const Tensors copies = clone_all(parameters);
      LocalOptimizer ours =
          LocalOptimizer::make({{parameters, SGD{.lr = 0.1, .momentum = momentum, .nesterov = nesterov}}}).value();
      torch::optim::SGD torch(copies, torch::optim::SGDOptions(0.1).momentum(momentum).nesterov(nesterov));
      for (std::int64_t step = 0; step < 5; ++step) {
        const Tensors gradients{sparse_gradient(step)};
        ASSERT_TRUE(ours.step(gradients));
        step_torch(torch, copies, gradients);
        ASSERT_TRUE(same_bits(parameters, copies)) << "momentum " << momentum << " step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace caftan::optim::parity_test
