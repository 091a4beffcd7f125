/// A step of each optimizer against torch's fused and foreach kernels over parameters of the same shapes. The sides
/// take turns in random order, each over tensors of its own; a line has the medians of the times, and of each round's
/// ratio to the side of torch that is faster. Times are CPU time of the thread, which does all the work of every side.
/// The foreach side is the sequence of `_foreach` kernels that PyTorch's Python optimizers call with `foreach=True`.
/// LBFGS stands beside torch::optim::LBFGS: there is no kernel of it.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_abs.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_maximum.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sign.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "caftan/optim/local_optimizer.hpp"

namespace {

using namespace caftan;
using Tensors = std::vector<at::Tensor>;

double now_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Parameters, their gradients and two lists of state.
struct Model {
  explicit Model(const std::vector<std::int64_t>& sizes) {
    at::manual_seed(1);
    for (const std::int64_t size : sizes) {
      parameters.push_back(at::randn({size}));
      gradients.push_back(at::randn({size}));
      first.push_back(at::zeros_like(parameters.back()));
      second.push_back(at::zeros_like(parameters.back()));
      counts.push_back(at::full({}, 0.0, at::kFloat));
    }
  }
  void count() {
    ++steps;
    at::_foreach_add_(counts, 1);
  }
  Tensors parameters, gradients, first, second, counts;
  double steps = 0;
};

using Step = std::function<void()>;

struct Side {
  const char* name;
  bool is_torch;
  Step step;
};

Step caftan_step(const std::vector<std::int64_t>& sizes, const optim::Algorithm& algorithm) {
  auto model = std::make_shared<Model>(sizes);
  for (at::Tensor& parameter : model->parameters) parameter.requires_grad_();
  auto optimizer =
      std::make_shared<optim::LocalOptimizer>(optim::LocalOptimizer::make({{model->parameters, algorithm}}).value());
  return [model, optimizer] { optimizer->step(model->gradients).value(); };
}

/// Makes a step of torch's kernels over a model of its own.
Step torch_step(const std::vector<std::int64_t>& sizes, void (*run)(Model&)) {
  auto model = std::make_shared<Model>(sizes);
  return [model, run] { run(*model); };
}

// ---- what PyTorch's optimizers call with foreach=True, for the options that `measure` gives Caftan's

void foreach_sgd(Model& m) {
  if (m.steps == 0) {
    for (std::size_t i = 0; i < m.first.size(); ++i) m.first[i].copy_(m.gradients[i]);
  } else {
    at::_foreach_mul_(m.first, 0.9);
    at::_foreach_add_(m.first, m.gradients);
  }
  ++m.steps;
  at::_foreach_add_(m.parameters, m.first, -0.01);
}

template <bool Decoupled>
void foreach_adam(Model& m) {
  m.count();
  if (Decoupled) at::_foreach_mul_(m.parameters, 1 - 0.001 * 0.01);
  at::_foreach_lerp_(m.first, m.gradients, 1 - 0.9);
  at::_foreach_mul_(m.second, 0.999);
  at::_foreach_addcmul_(m.second, m.gradients, m.gradients, 1 - 0.999);
  Tensors root = at::_foreach_sqrt(m.second);
  at::_foreach_div_(root, std::sqrt(1 - std::pow(0.999, m.steps)));
  at::_foreach_add_(root, 1e-8);
  at::_foreach_addcdiv_(m.parameters, m.first, root, -0.001 / (1 - std::pow(0.9, m.steps)));
}

void foreach_adagrad(Model& m) {
  m.count();
  at::_foreach_addcmul_(m.first, m.gradients, m.gradients, 1);
  Tensors root = at::_foreach_sqrt(m.first);
  at::_foreach_add_(root, 1e-10);
  const Tensors scaled = at::_foreach_mul(m.gradients, -0.01);
  at::_foreach_addcdiv_(m.parameters, scaled, root);
}

void foreach_adadelta(Model& m) {
  m.count();
  at::_foreach_mul_(m.first, 0.9);
  at::_foreach_addcmul_(m.first, m.gradients, m.gradients, 1 - 0.9);
  Tensors root = at::_foreach_add(m.first, 1e-6);
  at::_foreach_sqrt_(root);
  Tensors delta = at::_foreach_add(m.second, 1e-6);
  at::_foreach_sqrt_(delta);
  at::_foreach_div_(delta, root);
  at::_foreach_mul_(delta, m.gradients);
  at::_foreach_mul_(m.second, 0.9);
  at::_foreach_addcmul_(m.second, delta, delta, 1 - 0.9);
  at::_foreach_add_(m.parameters, delta, -1.0);
}

void foreach_rmsprop(Model& m) {
  m.count();
  at::_foreach_mul_(m.first, 0.99);
  at::_foreach_addcmul_(m.first, m.gradients, m.gradients, 1 - 0.99);
  Tensors root = at::_foreach_sqrt(m.first);
  at::_foreach_add_(root, 1e-8);
  at::_foreach_addcdiv_(m.parameters, m.gradients, root, -0.01);
}

void foreach_rprop(Model& m) {
  if (m.steps == 0) {
    for (at::Tensor& size : m.second) size.fill_(0.01);
  }
  m.count();
  Tensors signs = at::_foreach_mul(m.gradients, m.first);
  at::_foreach_sign_(signs);
  for (at::Tensor& sign : signs) {
    sign.masked_fill_(sign.gt(0), 1.2).masked_fill_(sign.lt(0), 0.5).masked_fill_(sign.eq(0), 1);
  }
  at::_foreach_mul_(m.second, signs);
  at::_foreach_clamp_min_(m.second, 1e-6);
  at::_foreach_clamp_max_(m.second, 50);
  Tensors used;
  for (std::size_t i = 0; i < signs.size(); ++i) used.push_back(m.gradients[i].masked_fill(signs[i].eq(0.5), 0));
  for (std::size_t i = 0; i < used.size(); ++i) m.first[i].copy_(used[i]);
  at::_foreach_sign_(used);
  at::_foreach_addcmul_(m.parameters, used, m.second, -1);
}

void foreach_adamax(Model& m) {
  m.count();
  at::_foreach_lerp_(m.first, m.gradients, 1 - 0.9);
  at::_foreach_mul_(m.second, 0.999);
  Tensors now = at::_foreach_abs(m.gradients);
  at::_foreach_add_(now, 1e-8);
  at::_foreach_maximum_(m.second, now);
  at::_foreach_addcdiv_(m.parameters, m.first, m.second, -0.002 / (1 - std::pow(0.9, m.steps)));
}

// ---- torch's fused kernels

void fused_sgd(Model& m) {
  at::_fused_sgd_(m.parameters, m.gradients, m.first, 0, 0.9, 0.01, 0, false, false, m.steps == 0);
  ++m.steps;
}

void fused_adam(Model& m) {
  m.count();
  at::_fused_adam_(m.parameters, m.gradients, m.first, m.second, {}, m.counts, 0.001, 0.9, 0.999, 0, 1e-8, false,
                   false);
}

void fused_adamw(Model& m) {
  m.count();
  at::_fused_adamw_(m.parameters, m.gradients, m.first, m.second, {}, m.counts, 0.001, 0.9, 0.999, 0.01, 1e-8, false,
                    false);
}

void fused_adagrad(Model& m) {
  m.count();
  at::_fused_adagrad_(m.parameters, m.gradients, m.first, m.counts, 0.01, 0, 0, 1e-10, false);
}

// ---- the measure

/// Runs the sides in turns and prints a line for each of Caftan's.
void compare(const std::string& what, const std::vector<Side>& sides, int rounds) {
  std::vector<std::vector<double>> times(sides.size());
  for (const Side& side : sides) side.step();  // makes the state
  std::vector<std::size_t> order(sides.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);  // what a side finds in the caches depends on the one before it
    for (const std::size_t i : order) {
      const double start = now_us();
      sides[i].step();
      times[i].push_back(now_us() - start);
    }
  }
  std::size_t fastest = sides.size();
  std::string torch;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (!sides[i].is_torch) continue;
    const double time = median(times[i]);
    if (fastest == sides.size() || time < median(times[fastest])) fastest = i;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "   %s %10.1f us", sides[i].name, time);
    torch += text.data();
  }
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].is_torch) continue;
    std::vector<double> ratios;
    for (std::size_t round = 0; round < times[i].size(); ++round) {
      ratios.push_back(times[i][round] / times[fastest][round]);
    }
    std::printf("%-34s %-12s %10.1f us%s   ratio %.2f\n", what.c_str(), sides[i].name, median(times[i]), torch.c_str(),
                median(ratios));
  }
}

/// LBFGS of both over the same function, a sum of squares around the gradients.
void compare_lbfgs(const std::string& what, const std::vector<std::int64_t>& sizes, int rounds) {
  const auto gradients_at = [](const Model& m) {
    Tensors gradients;
    for (std::size_t i = 0; i < m.parameters.size(); ++i) {
      gradients.push_back(m.parameters[i].detach() * m.gradients[i].abs());
    }
    return gradients;
  };
  auto ours = std::make_shared<Model>(sizes);
  auto theirs = std::make_shared<Model>(sizes);
  for (Model* model : {ours.get(), theirs.get()}) {
    for (at::Tensor& parameter : model->parameters) parameter.requires_grad_();
  }
  // So small a rate that no step comes to an end: each has all its iterations.
  const optim::LBFGS options{.lr = 1e-4, .max_iter = 4, .tolerance_grad = 0, .tolerance_change = 0, .history_size = 10};
  auto optimizer =
      std::make_shared<optim::LocalOptimizer>(optim::LocalOptimizer::make({{ours->parameters, options}}).value());
  auto torch = std::make_shared<torch::optim::LBFGS>(
      theirs->parameters,
      torch::optim::LBFGSOptions(1e-4).max_iter(4).tolerance_grad(0).tolerance_change(0).history_size(10));
  auto loss = std::make_shared<double>(1e6);
  compare(what,
          {{"caftan", false,
            [=] {
              optimizer
                  ->step([&]() -> Result<optim::LocalEvaluation> {
                    return optim::LocalEvaluation{*loss -= 1, gradients_at(*ours)};
                  })
                  .value();
            }},
           {"torch::optim", true,
            [=] {
              torch->step([&] {
                const at::NoGradGuard no_grad;
                const Tensors gradients = gradients_at(*theirs);
                for (std::size_t i = 0; i < gradients.size(); ++i) theirs->parameters[i].mutable_grad() = gradients[i];
                return at::full({}, *loss -= 1, at::kDouble);
              });
            }}},
          rounds);
}

void measure(const char* shapes, const std::vector<std::int64_t>& sizes, int rounds) {
  const auto what = [shapes](const char* algorithm) { return std::string(algorithm) + ", " + shapes; };
  const auto ours = [&](const optim::Algorithm& algorithm) {
    return Side{"caftan", false, caftan_step(sizes, algorithm)};
  };
  const auto our_fused = [&](const optim::Algorithm& algorithm) {
    return Side{"caftan fused", false, caftan_step(sizes, algorithm)};
  };
  const auto fused = [&](void (*run)(Model&)) { return Side{"fused", true, torch_step(sizes, run)}; };
  const auto multi = [&](void (*run)(Model&)) { return Side{"foreach", true, torch_step(sizes, run)}; };
  compare(what("SGD"),
          {ours(optim::SGD{.lr = 0.01, .momentum = 0.9}),
           our_fused(optim::SGD{.lr = 0.01, .momentum = 0.9, .fused = true}), fused(fused_sgd), multi(foreach_sgd)},
          rounds);
  compare(what("Adam"),
          {ours(optim::Adam{}), our_fused(optim::Adam{.fused = true}), fused(fused_adam), multi(foreach_adam<false>)},
          rounds);
  compare(what("AdamW"),
          {ours(optim::AdamW{}), our_fused(optim::AdamW{.fused = true}), fused(fused_adamw), multi(foreach_adam<true>)},
          rounds);
  compare(what("Adagrad"), {ours(optim::Adagrad{}), fused(fused_adagrad), multi(foreach_adagrad)}, rounds);
  compare(what("Adadelta"), {ours(optim::Adadelta{}), multi(foreach_adadelta)}, rounds);
  compare(what("RMSprop"), {ours(optim::RMSprop{}), multi(foreach_rmsprop)}, rounds);
  compare(what("Rprop"), {ours(optim::Rprop{}), multi(foreach_rprop)}, rounds);
  compare(what("Adamax"), {ours(optim::Adamax{}), multi(foreach_adamax)}, rounds);
  compare_lbfgs(what("LBFGS"), sizes, rounds);
}

/// Returns the sizes of 161 parameters as a ResNet-50 has them, an eighth as wide.
std::vector<std::int64_t> model_of_161() {
  std::vector<std::int64_t> sizes{147, 8, 8};
  const auto block = [&](std::int64_t in, std::int64_t width, bool projects) {
    for (const std::int64_t size :
         {in * width, width, width, 9 * width * width, width, width, 4 * width * width, 4 * width, 4 * width}) {
      sizes.push_back(size);
    }
    if (projects) sizes.insert(sizes.end(), {4 * in * width, 4 * width, 4 * width});
  };
  std::int64_t in = 8;
  std::int64_t width = 8;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 0; i < blocks; ++i) {
      block(in, width, i == 0);
      in = 4 * width;
    }
    width *= 2;
  }
  sizes.insert(sizes.end(), {256 * 1000 / 8, 1000 / 8});
  return sizes;
}

}  // namespace

int main() {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  measure("1000 x 10", std::vector<std::int64_t>(1000, 10), 31);
  measure("100 x 1,000", std::vector<std::int64_t>(100, 1'000), 101);
  measure("20 x 100,000", std::vector<std::int64_t>(20, 100'000), 31);
  measure("161 of a model", model_of_161(), 101);
}
