/// The modules that the tests of remote modules create, and the workers that serve these modules.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "caftan/nn/internal/module_control.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test {

struct Scaling {
  double by = 1;
  std::string word = "default";
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& by& word;
  }
};
using Triple = std::tuple<at::Tensor, double, std::string>;

/// A plain class: one layer, whose weight has two names.
class Net {
 public:
  explicit Net(int seed)
      : weight_(at::linspace(-1, 1 + seed, 12).view({4, 3}).contiguous().requires_grad_()),
        bias_(at::full({3}, 0.5).requires_grad_()) {
    if (seed < 0) throw std::invalid_argument("no seed is negative");
  }

  std::vector<nn::NamedTensor> named_parameters() const {
    return {{"weight", weight_}, {"bias", bias_}, {"tied", weight_}};
  }
  std::vector<nn::NamedTensor> named_buffers() const { return {{"calls", calls_}}; }
  void train(bool on) { training_ = on; }

  at::Tensor forward(const at::Tensor& x) {
    if (training_) calls_.add_(1);
    return x.matmul(weight_) + bias_;
  }
  Triple scaled(const at::Tensor& x, const Scaling& scaling) const {
    return {x * scaling.by, scaling.by, scaling.word};
  }
  bool is_in_train_mode() const { return training_; }
  /// Waits for a call of another worker, and returns whether the mode is still the same.
  bool keeps_its_mode(Worker& worker, const std::string& other);
  at::Tensor call_itself(const nn::RemoteModule<Net>& self, const at::Tensor& x) const { return self.forward(x); }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor calls_ = at::zeros({1});
  bool training_ = true;
};

void halve(Net& net, at::Tensor& x);
void add_one(Net& net, at::Tensor& y);
/// Throws std::runtime_error("not today").
void refuse(Net& net, at::Tensor& x);

/// As many parameters as a middle-sized model.
class Wide {
 public:
  explicit Wide(int parameters) {
    for (int i = 0; i < parameters; ++i) {
      weights_.push_back({"w" + std::to_string(i), at::full({256}, 0.5 * i).requires_grad_()});
    }
  }
  std::vector<nn::NamedTensor> named_parameters() const { return weights_; }

 private:
  std::vector<nn::NamedTensor> weights_;
};

/// A subclass of torch's, with a child.
class Child : public torch::nn::Module {
 public:
  Child() : weight_(register_parameter("weight", at::full({2}, 3.0))) {}
  at::Tensor forward(const at::Tensor& x) { return is_training() ? x * weight_ : x; }

 private:
  at::Tensor weight_;
};
class Parent : public torch::nn::Module {
 public:
  Parent()
      : child_(register_module("child", std::make_shared<Child>())), count_(register_buffer("count", at::zeros({1}))) {}
  at::Tensor forward(const at::Tensor& x) { return child_->forward(x); }

 private:
  std::shared_ptr<Child> child_;
  at::Tensor count_;
};

at::Tensor forward_there(const nn::RemoteModule<Net>& net, const at::Tensor& x);
std::tuple<std::string, bool> look_at(const nn::RemoteModule<Net>& net);
/// Makes a second handle there, with a mode of its own.
bool evaluate_there(nn::RemoteModule<Net> net);
nn::RemoteModule<Net> hand_back(const nn::RemoteModule<Net>& net);

/// Returns what each worker serves: the classes and functions above.
Registry make_module_registry();

/// A handle that shows its control.
template <class M>
struct Opened : nn::RemoteModule<M> {
  explicit Opened(const nn::RemoteModule<M>& other) : nn::RemoteModule<M>(other) {}
  /// A handle of another class for the module that `other` refers to.
  explicit Opened(const RRef<nn::ServedModule>& other) { this->module_ = other; }
  const RRef<nn::ModuleControl>& control() const { return this->control_; }
};

inline at::Tensor input() { return at::linspace(-1, 2, 8).view({2, 4}); }

inline std::map<std::string, at::Tensor> by_name(const nn::StateDict& state) {
  std::map<std::string, at::Tensor> named;
  for (const nn::NamedTensor& one : state) named.emplace(one.name, one.tensor);
  return named;
}

class RemoteModules : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Worker& here() { return cluster_["worker0"]; }
  nn::RemoteModule<Net> make(int seed = 1) { return nn::RemoteModule<Net>(here(), "worker1", seed); }

  testing::Cluster cluster_{GetParam(), {"worker0", "worker1", "worker2"}, make_module_registry};
};

}  // namespace caftan::test
