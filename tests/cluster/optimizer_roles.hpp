/// What the optimizer tests register on each worker, the same model without workers, and the fixture they start from.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "caftan/optim/schedules.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"

namespace caftan::test {

using Parameters = std::vector<RRef<at::Tensor>>;

/// Opened by a test to let calls of `wait_at_gate` return.
class Gate {
 public:
  Future<int> wait() {
    Promise<int> promise;
    Future<int> future = promise.future();
    waiting_.push_back(std::move(promise));
    return future;
  }
  void open() {
    for (Promise<int>& promise : std::exchange(waiting_, {})) promise.set(1);
  }

 private:
  std::vector<Promise<int>> waiting_;
};

/// One layer: tanh(x w + b), with values that depend on `seed` alone.
class Layer {
 public:
  explicit Layer(int seed)
      : weight_(at::linspace(-1, 1 + seed, 12).view({3, 4}).view({4, 3}).contiguous().requires_grad_()),
        bias_((at::ones({3}) * 0.1 * seed).requires_grad_()) {}

  at::Tensor forward(const at::Tensor& x) const {
    return (x.matmul(weight_) + bias_).tanh().repeat({1, 2}).narrow(1, 0, 4);
  }
  /// Computes without the bias, so that a pass gives the bias no gradient.
  at::Tensor forward_weight(const at::Tensor& x) const { return x.matmul(weight_).repeat({1, 2}).narrow(1, 0, 4); }
  /// Looks up rows of the weight, so that a pass gives the weight a sparse gradient.
  at::Tensor look_up(const at::Tensor& rows) const {
    return at::embedding(weight_, rows, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true);
  }
  Parameters parameters(Worker& worker) const { return {worker.make_rref(weight_), worker.make_rref(bias_)}; }
  RRef<at::Tensor> weight_again(Worker& worker) const { return worker.make_rref(weight_); }
  std::vector<at::Tensor> values() const { return {weight_.detach().clone(), bias_.detach().clone()}; }
  std::vector<at::Tensor> tensors() const { return {weight_, bias_}; }
  void set_values(const std::vector<at::Tensor>& values) {
    const at::NoGradGuard no_grad;
    weight_.copy_(values[0]);
    bias_.copy_(values[1]);
  }
  /// Keeps the object's turn until the test opens the gate. Returns whether the weight has changed meanwhile.
  bool hold(Worker& worker);

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

inline Gate gate;
inline Future<int> wait_at_gate() { return gate.wait(); }
inline bool Layer::hold(Worker& worker) {
  const at::Tensor before = weight_.detach().clone();
  worker.rpc_sync<&wait_at_gate>("worker0");
  return !at::equal(before, weight_.detach());
}

inline at::Tensor make_constant() { return at::ones({2}); }
inline at::Tensor make_complex() { return at::complex(at::ones({2}), at::ones({2})).requires_grad_(); }

inline Registry make_optimizer_registry() {
  Registry registry;
  registry.add<&make_constant>("make_constant");
  registry.add<&make_complex>("make_complex");
  registry.add<&wait_at_gate>("wait_at_gate");
  registry.add<Layer>("layer")
      .constructor<int>()
      .method<&Layer::forward>("forward")
      .method<&Layer::forward_weight>("forward_weight")
      .method<&Layer::look_up>("look_up")
      .method<&Layer::parameters>("parameters")
      .method<&Layer::weight_again>("weight_again")
      .method<&Layer::values>("values")
      .method<&Layer::set_values>("set_values")
      .exclusive<&Layer::hold>("hold");
  return registry;
}

inline bool same_values(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i].detach(), b[i].detach())) return false;
  }
  return a.size() == b.size();
}

inline at::Tensor make_input(int step) { return at::linspace(-1.0 - step, 2.0, 8).view({2, 4}); }

/// Three layers: one at worker1, one at worker2, and one at worker0 itself, which forward() uses without a call.
class OptimizerCluster : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  /// @param change  applied to each worker's options before it starts
  explicit OptimizerCluster(const std::function<Registry()>& registry = make_optimizer_registry,
                            const testing::Cluster::Change& change = {})
      : cluster_(GetParam(), {"worker0", "worker1", "worker2"}, registry, change) {
    for (int i = 0; i < 3; ++i) {
      layers_.push_back(here().remote<Layer>(WorkerId{static_cast<std::uint32_t>((i + 1) % 3)}, i + 1));
    }
  }

  Worker& here() { return cluster_[0]; }
  Parameters all_parameters() {
    Parameters all;
    for (const RRef<Layer>& layer : layers_) {
      for (const RRef<at::Tensor>& parameter : layer.rpc_sync<&Layer::parameters>()) all.push_back(parameter);
    }
    return all;
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = x;
    for (std::size_t i = 0; i < 2; ++i) y = layers_[i].rpc_sync<&Layer::forward>(y);
    return layers_[2].local_value()->forward(y);
  }
  std::vector<at::Tensor> values() {
    std::vector<at::Tensor> all;
    for (const RRef<Layer>& layer : layers_) {
      for (const at::Tensor& value : layer.rpc_sync<&Layer::values>()) all.push_back(value);
    }
    return all;
  }
  /// One step of the whole model, as users write it.
  void train(optim::DistributedOptimizer& optimizer, int step) {
    autograd::Context context(here());
    context.backward({forward(make_input(step)).sum()});
    optimizer.step(context);
  }

  testing::Cluster cluster_;
  testing::Network& net_ = cluster_.network();
  std::vector<RRef<Layer>> layers_;
};

/// The same model in one place, stepped by a LocalOptimizer.
struct LocalModel {
  std::vector<Layer> layers{Layer(1), Layer(2), Layer(3)};

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const Layer& layer : layers) {
      for (const at::Tensor& tensor : layer.tensors()) all.push_back(tensor);
    }
    return all;
  }
  /// Returns the gradients of a step.
  std::vector<at::Tensor> gradients(int step) const {
    at::Tensor y = make_input(step);
    for (const Layer& layer : layers) y = layer.forward(y);
    for (const at::Tensor& parameter : parameters()) parameter.mutable_grad() = at::Tensor();
    y.sum().backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : parameters()) all.push_back(parameter.grad());
    return all;
  }
};

}  // namespace caftan::test
