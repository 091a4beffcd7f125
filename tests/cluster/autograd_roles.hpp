/// What the autograd tests register on each worker, and the fixture they start from.
#pragma once

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"

namespace caftan::test {

inline at::Tensor leaf(std::vector<double> values) { return at::tensor(values, at::kDouble).requires_grad_(); }

inline at::Tensor square(const at::Tensor& x) { return x * x; }
inline at::Tensor add_tensors(const at::Tensor& a, const at::Tensor& b) { return a + b; }
inline at::Tensor detached(const at::Tensor& x) { return x.detach() * 2; }
inline std::vector<at::Tensor> split3(const at::Tensor& x) { return {x[0] * 2, x[1] * 3, x[2] * 4}; }
/// Squares at each worker of `path` in turn, from the first on.
inline at::Tensor relay(Worker& worker, const std::vector<std::string>& path, const at::Tensor& x) {
  if (path.empty()) return x * x;
  return worker.rpc_sync<&relay>(path[0], std::vector<std::string>(path.begin() + 1, path.end()), x) * 3;
}
/// As square, but returns a future whose value, x^2 + 1, is computed in a continuation.
inline Future<at::Tensor> square_later(Worker& worker, const std::string& where, const at::Tensor& x) {
  return worker.rpc_async<&square>(where, x).then([](Result<at::Tensor> y) -> Result<at::Tensor> {
    if (!y) return y.error();
    return *y + 1;
  });
}
/// Squares twice at `where`, the second time from a continuation.
inline Future<at::Tensor> fourth_power_later(Worker& worker, const std::string& where, const at::Tensor& x) {
  return worker.rpc_async<&square>(where, x).then([&worker, where](Result<at::Tensor> y) {
    if (!y) return make_ready_future<at::Tensor>(y.error());
    return worker.rpc_async<&square>(where, *y);
  });
}
/// Calls square and drops its result, so that no backward pass runs through that call; returns 5 x.
inline at::Tensor with_unused(Worker& worker, const std::string& where, const at::Tensor& x) {
  (void)worker.rpc_sync<&square>(where, x);
  return x * 5;
}
/// Runs a backward pass from y at this worker. Returns the text of its error; empty if the pass succeeded.
inline std::string backward_there(Worker& worker, const at::Tensor& y) {
  const auto done = autograd::Context::current(worker).try_backward({y.sum()});
  return done ? "" : done.error().message();
}

/// A module with one weight: y = w * x.
class Scale {
 public:
  explicit Scale(double weight) : weight_(leaf({weight})) {}
  at::Tensor forward(const at::Tensor& x) const { return weight_ * x; }
  const at::Tensor& weight() const { return weight_; }
  /// Returns the gradient of the weight in the caller's context; empty if there is none.
  std::vector<double> gradient(Worker& worker) const {
    const at::Tensor g = autograd::Context::current(worker).gradients().of(weight_);
    return g.defined() ? std::vector<double>{g.item<double>()} : std::vector<double>{};
  }

 private:
  at::Tensor weight_;
};

inline std::size_t context_count(Worker& worker) { return worker.autograd_contexts().size(); }

inline Registry make_autograd_registry() {
  Registry registry;
  registry.add<&square>("square");
  registry.add<&add_tensors>("add");
  registry.add<&detached>("detached");
  registry.add<&split3>("split3");
  registry.add<&relay>("relay");
  registry.add<&square_later>("square_later");
  registry.add<&fourth_power_later>("fourth_power_later");
  registry.add<&with_unused>("with_unused");
  registry.add<&context_count>("context_count");
  registry.add<&backward_there>("backward_there");
  registry.add<Scale>("Scale")
      .constructor<double>()
      .method<&Scale::forward>("forward")
      .method<&Scale::gradient>("gradient")
      .method<&Scale::weight>("weight");
  return registry;
}

/// Three workers over the seeded executor, on connections that a test can hold and cut.
class AutogradCluster : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  explicit AutogradCluster(const std::vector<std::string>& names = {"worker0", "worker1", "worker2"},
                           const std::function<Registry()>& registry = make_autograd_registry)
      : cluster_(GetParam(), names, registry) {}

  Worker& operator[](std::size_t worker) { return cluster_[worker]; }
  void run_until_idle() { cluster_.run_until_idle(); }
  /// Expects that the first `workers` workers have no context left.
  void expect_no_contexts(std::size_t workers = 3) {
    run_until_idle();
    for (std::size_t i = 0; i < workers; ++i) EXPECT_TRUE(cluster_[i].autograd_contexts().empty()) << "worker" << i;
  }

  testing::Cluster cluster_;
  testing::Network& net_ = cluster_.network();
};

/// Returns the tensor's values.
inline std::vector<double> values(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor flat = tensor.detach().reshape({-1}).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

}  // namespace caftan::test
