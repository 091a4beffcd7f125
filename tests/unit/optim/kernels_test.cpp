// Kernels against torch::optim's chains of operations, bit for bit: rows of every length up to 70, every set of
// options, numbers that are infinite, denormal, zero or none (conformance 21.01, OP-15); and which parameters kernels
// step.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "caftan/optim/local_optimizer.hpp"
#include "kernel_call.hpp"

namespace caftan::optim::kernels_test {
namespace {

using Random = std::mt19937_64;
using Tensors = std::vector<at::Tensor>;

bool has_kernels() { return at::get_cpu_capability() != "DEFAULT"; }

/// Calls `code` with a zero of each dtype that has kernels.
template <class Code>
void for_each_dtype(const Code& code) {
  code(0.0F);
  code(0.0);
}

/// Returns normally distributed numbers; with `special`, every fourth is one at the edge of what the dtype can hold.
template <class T>
at::Tensor make_row(Random& random, std::int64_t size, bool special) {
  using Limits = std::numeric_limits<T>;
  const T edges[] = {T(0),
                     -T(0),
                     Limits::infinity(),
                     -Limits::infinity(),
                     Limits::quiet_NaN(),
                     Limits::max(),
                     -Limits::max(),
                     Limits::denorm_min(),
                     -Limits::denorm_min(),
                     Limits::min(),
                     Limits::min() / 3,
                     std::sqrt(Limits::min()),
                     std::sqrt(Limits::max())};
  std::normal_distribution<T> normal;
  at::Tensor row = at::empty({size}, std::is_same_v<T, float> ? at::kFloat : at::kDouble);
  for (std::int64_t i = 0; i < size; ++i) {
    const bool edge = special && random() % 4 == 0;
    row.mutable_data_ptr<T>()[i] = edge ? edges[random() % std::size(edges)] : normal(random);
  }
  return row;
}

/// Returns whether two rows have the same bits; any two that are no numbers are the same.
template <class T>
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const T x = a.const_data_ptr<T>()[i];
    const T y = b.const_data_ptr<T>()[i];
    if (std::memcmp(&x, &y, sizeof(T)) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

using Named = std::map<std::string, at::Tensor>;

Named state_of(const torch::optim::SGDParamState& state) { return {{"momentum_buffer", state.momentum_buffer()}}; }
Named state_of(const torch::optim::AdagradParamState& state) { return {{"sum", state.sum()}}; }
Named state_of(const torch::optim::AdamParamState& state) {
  return {{"exp_avg", state.exp_avg()}, {"exp_avg_sq", state.exp_avg_sq()}, {"max_exp_avg_sq", state.max_exp_avg_sq()}};
}
Named state_of(const torch::optim::AdamWParamState& state) {
  return {{"exp_avg", state.exp_avg()}, {"exp_avg_sq", state.exp_avg_sq()}, {"max_exp_avg_sq", state.max_exp_avg_sq()}};
}

/// torch's optimizer and the class of its state.
struct TorchSgd {
  using Optimizer = torch::optim::SGD;
  using State = torch::optim::SGDParamState;
};
struct TorchAdam {
  using Optimizer = torch::optim::Adam;
  using State = torch::optim::AdamParamState;
};
struct TorchAdamW {
  using Optimizer = torch::optim::AdamW;
  using State = torch::optim::AdamWParamState;
};
struct TorchAdagrad {
  using Optimizer = torch::optim::Adagrad;
  using State = torch::optim::AdagradParamState;
};

/// Returns whether a state of ours is the state that torch's optimizer has of a parameter, bit for bit.
template <class T, class Torch>
bool same_state(const Named& ours, typename Torch::Optimizer& torch, const at::Tensor& parameter) {
  if (ours.empty()) return true;
  const Named theirs =
      state_of(static_cast<const typename Torch::State&>(*torch.state().at(parameter.unsafeGetTensorImpl())));
  return std::all_of(ours.begin(), ours.end(),
                     [&](const auto& named) { return same_bits<T>(named.second, theirs.at(named.first)); });
}

/// Steps rows of the sizes by our optimizer and by torch's. To test `maximize`, torch's gets the negative gradient.
template <class T, class Torch, class TorchOptions, class Options>
void expect_torchs_bits(const Options& ours, const TorchOptions& theirs, const std::vector<std::int64_t>& sizes,
                        bool special) {
  Random random(7);
  Tensors parameters;
  Tensors copies;
  for (const std::int64_t size : sizes) {
    parameters.push_back(make_row<T>(random, size, special).requires_grad_());
    copies.push_back(parameters.back().detach().clone().requires_grad_());
  }
  LocalOptimizer optimizer = LocalOptimizer::make({{parameters, ours}}).value();
  typename Torch::Optimizer torch(copies, theirs);
  for (int step = 0; step < 4; ++step) {
    Tensors gradients;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      gradients.push_back(make_row<T>(random, sizes[i], special));
      copies[i].mutable_grad() = ours.maximize ? gradients[i].neg() : gradients[i].clone();
    }
    ASSERT_TRUE(optimizer.step(gradients));
    torch.step();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_TRUE(same_bits<T>(parameters[i], copies[i]))
          << sizeof(T) << " bytes, step " << step << ", " << sizes[i] << " elements, special " << special;
      ASSERT_TRUE((same_state<T, Torch>(optimizer.state(i), torch, copies[i]))) << "step " << step << ", " << sizes[i];
    }
  }
}

/// As above, for both dtypes and all lengths, without and with special numbers.
template <class Torch, class TorchOptions, class Options>
void expect_torchs_bits_everywhere(Options ours, const TorchOptions& theirs) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 0; size <= 70; ++size) sizes.push_back(size);
  for_each_dtype([&](auto zero) {
    for (const bool special : {false, true}) {
      if constexpr (std::is_same_v<Options, SGD>) ours.fused = special && has_kernels();  // which changes nothing
      expect_torchs_bits<decltype(zero), Torch, TorchOptions>(ours, theirs, sizes, special);
    }
  });
}

TEST(Kernels, Row21_01_SgdHasTorchsBits) {
  for (const double momentum : {0.0, 0.9, 0.3}) {
    for (const double dampening : {0.0, 0.1}) {
      for (const bool nesterov : {false, true}) {
        if (nesterov && (momentum == 0 || dampening != 0)) continue;
        for (const double weight_decay : {0.0, 0.03}) {
          for (const bool maximize : {false, true}) {
            SCOPED_TRACE(testing::Message()
                         << "momentum " << momentum << " dampening " << dampening << " nesterov " << nesterov
                         << " weight_decay " << weight_decay << " maximize " << maximize);
            expect_torchs_bits_everywhere<TorchSgd>(SGD{.lr = 0.07,
                                                        .momentum = momentum,
                                                        .dampening = dampening,
                                                        .weight_decay = weight_decay,
                                                        .nesterov = nesterov,
                                                        .maximize = maximize},
                                                    torch::optim::SGDOptions(0.07)
                                                        .momentum(momentum)
                                                        .dampening(dampening)
                                                        .weight_decay(weight_decay)
                                                        .nesterov(nesterov));
          }
        }
      }
    }
  }
}

template <class Torch, class TorchOptions, class Options>
void check_adam() {
  for (const double first : {0.9, 0.0}) {
    for (const double weight_decay : {0.0, 0.03}) {
      for (const double eps : {1e-8, 0.0}) {
        for (const bool amsgrad : {false, true}) {
          for (const bool maximize : {false, true}) {
            SCOPED_TRACE(testing::Message() << "beta " << first << " weight_decay " << weight_decay << " eps " << eps
                                            << " amsgrad " << amsgrad << " maximize " << maximize);
            expect_torchs_bits_everywhere<Torch>(
                Options{.lr = 0.07,
                        .betas = {first, 0.99},
                        .eps = eps,
                        .weight_decay = weight_decay,
                        .amsgrad = amsgrad,
                        .maximize = maximize},
                TorchOptions(0.07).betas({first, 0.99}).eps(eps).weight_decay(weight_decay).amsgrad(amsgrad));
          }
        }
      }
    }
  }
}

TEST(Kernels, Row21_01_AdamHasTorchsBits) { check_adam<TorchAdam, torch::optim::AdamOptions, Adam>(); }
TEST(Kernels, Row21_01_AdamWHasTorchsBits) { check_adam<TorchAdamW, torch::optim::AdamWOptions, AdamW>(); }

TEST(Kernels, Row21_01_AdagradHasTorchsBits) {
  for (const double lr_decay : {0.0, 0.2}) {
    for (const double weight_decay : {0.0, 0.03}) {
      for (const double start : {0.0, 0.4}) {
        for (const double eps : {1e-10, 0.0}) {
          for (const bool maximize : {false, true}) {
            SCOPED_TRACE(testing::Message() << "lr_decay " << lr_decay << " weight_decay " << weight_decay << " start "
                                            << start << " eps " << eps << " maximize " << maximize);
            expect_torchs_bits_everywhere<TorchAdagrad>(Adagrad{.lr = 0.07,
                                                                .lr_decay = lr_decay,
                                                                .weight_decay = weight_decay,
                                                                .initial_accumulator_value = start,
                                                                .eps = eps,
                                                                .maximize = maximize},
                                                        torch::optim::AdagradOptions(0.07)
                                                            .lr_decay(lr_decay)
                                                            .weight_decay(weight_decay)
                                                            .initial_accumulator_value(start)
                                                            .eps(eps));
          }
        }
      }
    }
  }
}

/// One element of Adam with the nearest roots, in the roundings of the chain.
template <class T, bool Decoupled>
struct AdamElement {
  T parameter, mean{}, square{}, largest{};

  void step(const AdamFamily<Decoupled>& adam, T gradient, int count) {
    if (adam.maximize) gradient = -gradient;
    if (adam.weight_decay != 0) {
      if (Decoupled) {
        parameter *= static_cast<T>(1 - adam.lr * adam.weight_decay);
      } else {
        gradient = std::fma(static_cast<T>(adam.weight_decay), parameter, gradient);
      }
    }
    const auto [first, second] = adam.betas;
    mean = std::fma(static_cast<T>(1 - first), gradient, mean * static_cast<T>(first));
    square = std::fma(static_cast<T>(1 - second) * gradient, gradient, square * static_cast<T>(second));
    largest = std::max(largest, square);
    const T root = std::sqrt(adam.amsgrad ? largest : square) / static_cast<T>(std::sqrt(1 - std::pow(second, count)));
    const T factor = static_cast<T>(-(adam.lr / (1 - std::pow(first, count))));
    parameter += factor * mean / (root + static_cast<T>(adam.eps));
  }
};

template <class T, bool Decoupled>
void expect_nearest_roots(const AdamFamily<Decoupled>& adam) {
  Random random(11);
  for (std::int64_t size = 0; size <= 40; ++size) {
    const at::Tensor parameter = make_row<T>(random, size, false).requires_grad_();
    std::vector<AdamElement<T, Decoupled>> elements;
    for (std::int64_t i = 0; i < size; ++i) elements.push_back({parameter.const_data_ptr<T>()[i]});
    LocalOptimizer optimizer = LocalOptimizer::make({{Tensors{parameter}, adam}}).value();
    for (int count = 1; count <= 4; ++count) {
      const at::Tensor gradient = make_row<T>(random, size, false);
      ASSERT_TRUE(optimizer.step(Tensors{gradient}));
      for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i].step(adam, gradient.const_data_ptr<T>()[i], count);
        ASSERT_EQ(parameter.const_data_ptr<T>()[i], elements[i].parameter) << size << " elements, step " << count;
      }
    }
  }
}

template <bool Decoupled>
void expect_nearest_roots_everywhere() {
  for (const double weight_decay : {0.0, 0.03}) {
    for (const bool amsgrad : {false, true}) {
      for (const bool maximize : {false, true}) {
        const AdamFamily<Decoupled> adam{
            .lr = 0.07, .weight_decay = weight_decay, .amsgrad = amsgrad, .maximize = maximize, .fused = true};
        expect_nearest_roots<float>(adam);
        expect_nearest_roots<double>(adam);
      }
    }
  }
}

TEST(Kernels, FusedAdamHasTheNearestRoots) {
  if (has_kernels()) expect_nearest_roots_everywhere<false>();
}

TEST(Kernels, FusedAdamWHasTheNearestRoots) {
  if (has_kernels()) expect_nearest_roots_everywhere<true>();
}

TEST(Kernels, RowsCutOverThreadsHaveTorchsBits) {
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  for_each_dtype([](auto zero) {
    expect_torchs_bits<decltype(zero), TorchAdam, torch::optim::AdamOptions>(
        Adam{.lr = 0.07}, torch::optim::AdamOptions(0.07), {100'003, 32'768, 32'769}, true);
  });
  at::set_num_threads(threads);
}

TEST(Kernels, RangesCoverARowOnce) {
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  for (const std::int64_t size : {0, 1, 32'768, 32'769, 100'003}) {
    std::vector<int> visits(static_cast<std::size_t>(size));
    std::mutex mutex;
    for_each_range(at::empty({size}), [&](std::size_t begin, std::size_t count) {
      const std::lock_guard lock(mutex);
      for (std::size_t i = begin; i < begin + count; ++i) ++visits.at(i);
    });
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), size);
  }
  at::set_num_threads(threads);
}

// ---- which parameters kernels step

/// A parameter of 4 x 3 with a gradient and one state tensor.
struct Case {
  explicit Case(at::ScalarType dtype = at::kFloat)
      : parameter(at::zeros({4, 3}, dtype).requires_grad_()), gradient(at::zeros({4, 3}, dtype)) {
    state.tensors[0] = at::zeros({4, 3}, dtype);
  }
  bool covered() { return kernel_covers({&parameter, &gradient, &state}, 1); }

  at::Tensor parameter;
  at::Tensor gradient;
  ParameterState state;
};

TEST(KernelCover, HasRowsOfFloatsAndDoublesOfTheCpu) {
  EXPECT_EQ(Case(at::kFloat).covered(), has_kernels());
  EXPECT_EQ(Case(at::kDouble).covered(), has_kernels());
  Case transposed;
  for (at::Tensor* tensor : {&transposed.parameter, &transposed.gradient, &transposed.state.tensors[0]}) {
    *tensor = tensor->detach().t();
  }
  EXPECT_EQ(transposed.covered(), has_kernels());
  EXPECT_FALSE(Case(at::kBFloat16).covered());
  EXPECT_FALSE(Case(at::kHalf).covered());
  EXPECT_FALSE(Case(at::kComplexFloat).covered());
}

TEST(KernelCover, LeavesOutWhatLiesOtherwise) {
  Case gaps;
  gaps.parameter = at::zeros({4, 6}).slice(1, 0, 6, 2);
  EXPECT_FALSE(gaps.covered());
  Case transposed;
  transposed.gradient = at::zeros({3, 4}).t();
  EXPECT_FALSE(transposed.covered());
  Case expanded;
  expanded.gradient = at::zeros({1, 1}).expand({4, 3});
  EXPECT_FALSE(expanded.covered());
  Case sparse;
  sparse.gradient = at::zeros({4, 3}).to_sparse();
  EXPECT_FALSE(sparse.covered());
  Case without;
  without.state.tensors[0].reset();
  EXPECT_FALSE(without.covered());
  Case other_dtype;
  other_dtype.state.tensors[0] = at::zeros({4, 3}, at::kDouble);
  EXPECT_FALSE(other_dtype.covered());
}

TEST(KernelCover, LeavesOutGradientsThatAreNoMemoryOfTheirOwn) {
  Case negative;
  negative.gradient = at::_neg_view(negative.gradient);
  EXPECT_FALSE(negative.covered());
  Case zero;
  zero.gradient = at::_efficientzerotensor({4, 3}, at::kFloat);
  EXPECT_FALSE(zero.covered());
  Case of_parameter;
  of_parameter.gradient = of_parameter.parameter.detach();
  EXPECT_FALSE(of_parameter.covered());
  Case of_state;
  of_state.gradient = of_state.state.tensors[0];
  EXPECT_FALSE(of_state.covered());
  Case beside;
  const at::Tensor both = at::zeros({9, 3});
  beside.parameter = both.slice(0, 0, 4);
  beside.gradient = both.slice(0, 4, 8);
  EXPECT_EQ(beside.covered(), has_kernels());
  beside.gradient = both.slice(0, 3, 7);
  EXPECT_FALSE(beside.covered());
}

TEST(KernelCover, AGradientInTheParametersMemoryIsSteppedAsTorchDoes) {
  at::manual_seed(3);
  const at::Tensor parameter = at::randn({37}).requires_grad_();
  const at::Tensor copy = parameter.detach().clone().requires_grad_();
  LocalOptimizer ours = LocalOptimizer::make({{Tensors{parameter}, AdamW{.lr = 0.07, .weight_decay = 0.5}}}).value();
  torch::optim::AdamW torch(Tensors{copy}, torch::optim::AdamWOptions(0.07).weight_decay(0.5));
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(ours.step(Tensors{parameter.detach()}));
    copy.mutable_grad() = copy.detach();
    torch.step();
    ASSERT_TRUE(same_bits<float>(parameter, copy));
  }
}

TEST(KernelCover, AFactorThatNoFloatHoldsIsAnErrorForFloats) {
  for_each_dtype([](auto zero) {
    const bool holds = std::is_same_v<decltype(zero), double>;
    const at::Tensor parameter = at::zeros({5}, holds ? at::kDouble : at::kFloat).requires_grad_();
    LocalOptimizer ours = LocalOptimizer::make({{Tensors{parameter}, SGD{.lr = 1e39}}}).value();
    EXPECT_EQ(ours.step(Tensors{at::zeros({5}, parameter.scalar_type())}).has_value(), holds);
  });
}

}  // namespace
}  // namespace caftan::optim::kernels_test
