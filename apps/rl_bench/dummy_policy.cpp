#include "rl_bench/dummy_policy.hpp"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <sstream>
#include <utility>

namespace caftan::rl_bench {
namespace {

at::Tensor make_uniform(at::IntArrayRef sizes, std::int64_t inputs, rl::Pcg64& random) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(inputs));
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  float* values = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(random.uniform(-bound, bound));
  return tensor;
}

/// Returns the action on which `uniform` (0..<1) falls.
int draw(const float* probabilities, std::int64_t actions, double uniform) {
  double sum = 0;
  for (std::int64_t action = 0; action + 1 < actions; ++action) {
    sum += probabilities[action];
    if (uniform < sum) return static_cast<int>(action);
  }
  return static_cast<int>(actions - 1);
}

}  // namespace

DummyPolicy::DummyPolicy(std::vector<std::int64_t> state_size, std::int64_t nlayers, std::int64_t out_features,
                         std::uint64_t seed)
    : state_size_(std::move(state_size)), random_(seed) {
  std::int64_t inputs =
      std::accumulate(state_size_.begin(), state_size_.end(), std::int64_t{1}, std::multiplies<std::int64_t>());
  for (std::int64_t layer = 0; layer <= nlayers; ++layer) {
    layers_.push_back(
        {make_uniform({inputs, out_features}, inputs, random_), make_uniform({out_features}, inputs, random_)});
    inputs = out_features;
  }
}

Result<void> DummyPolicy::check(const at::Tensor& state) const {
  if (state.defined() && state.sizes() == at::IntArrayRef(state_size_) && state.scalar_type() == at::kFloat &&
      state.is_cpu()) {
    return {};
  }
  std::ostringstream text;
  text << "the policy takes states of float32 on the CPU and of size " << at::IntArrayRef(state_size_);
  if (state.defined()) text << ", not of " << state.scalar_type() << " and of size " << state.sizes();
  return Error(Errc::bad_arguments, text.str());
}

std::vector<int> DummyPolicy::choose(const std::vector<at::Tensor>& states) {
  const c10::AutoGradMode no_recording(false);
  at::Tensor values = at::stack(states).flatten(1);
  for (const Layer& layer : layers_) values = at::addmm(layer.bias, values, layer.weight);
  const at::Tensor probabilities = at::softmax(values, 1).contiguous();
  const std::int64_t actions = probabilities.size(1);
  const float* row = probabilities.const_data_ptr<float>();
  std::vector<int> chosen;
  for (std::size_t i = 0; i < states.size(); ++i, row += actions)
    chosen.push_back(draw(row, actions, random_.uniform()));
  return chosen;
}

}  // namespace caftan::rl_bench
