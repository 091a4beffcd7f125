/// The module that the tests of shared modules train, its replay in one process, and trainers that a test moves step by
/// step.
#pragma once

#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/nn/replay.hpp"
#include "caftan/nn/shared_module.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"
#include "folder.hpp"

namespace caftan::test {

using Tensors = std::vector<at::Tensor>;

/// Two layers, whose backward pass reads the parameters.
class Layers {
 public:
  /// Throws std::invalid_argument for a negative seed.
  explicit Layers(int seed);
  std::vector<nn::NamedTensor> named_parameters() const;
  std::vector<nn::NamedTensor> named_buffers() const { return {{"examples", examples_}, {"calls", calls_}}; }
  void train(bool on) { training_ = on; }

  at::Tensor forward(const at::Tensor& x);
  /// As forward, after the test has opened the gate.
  at::Tensor forward_at_gate(Worker& worker, const at::Tensor& x);
  /// As forward; gives a buffer other sizes.
  at::Tensor forward_growing(const at::Tensor& x);
  /// Rows of the first weight: a pass gives the weight a sparse gradient.
  at::Tensor look_up(const at::Tensor& rows) const;
  bool is_in_train_mode() const { return training_; }

 private:
  Tensors weights_;
  at::Tensor examples_ = at::zeros({1});          // how many were seen in train mode
  at::Tensor calls_ = at::zeros({1}, at::kLong);  // in train mode
  bool training_ = true;
};

/// A module that keeps the tensor that its constructor is given.
class Keeping {
 public:
  explicit Keeping(const at::Tensor& weight) : weight_(weight.detach().requires_grad_()) {}
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight_}}; }
  at::Tensor forward(const at::Tensor& x) const { return x * weight_; }

 private:
  at::Tensor weight_;
};

/// A module whose constructor draws from torch's own generator, and then waits at a gate if the test has closed it.
class Drawing {
 public:
  explicit Drawing(int number);
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight_}}; }
  at::Tensor forward(const at::Tensor& x) const { return x * weight_; }

 private:
  at::Tensor weight_;
};
/// Lets steps by the algorithm "stumbling", which are those of SGD, throw at their second parameter, or no more.
void set_stumbling(bool on);

/// Lets constructors of Drawing wait from now on.
void close_drawing_gate();
/// Lets the one that has waited longest go on. Returns false if none waits.
bool let_one_draw();

Tensors make_weights(int seed);
at::Tensor input_of(std::uint64_t batch);
at::Tensor target_of(std::uint64_t batch);
Tensors gradients_at(std::span<const at::Tensor> parameters, std::uint64_t batch);
/// Returns the parameters that a replay of the log in that file ends with.
Tensors replayed(const std::string& path, int seed, const optim::Algorithm& algorithm);
/// Returns the parameters of a state of Layers.
Tensors parameters_of(const nn::StateDict& state);
bool same(const Tensors& one, const Tensors& other);

/// How a trainer's run ended.
struct Trained {
  std::uint64_t applied = 0;
  std::uint64_t stale = 0;      // stale_gradient
  std::uint64_t late = 0;       // round_closed
  std::uint64_t conflicts = 0;  // lease_conflict
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& applied& stale& late& conflicts;
  }
};

/// Joins and trains until that many of its gradients are applied, in contexts of its own.
Trained train(Worker& worker, nn::SharedModule<Layers> net, std::uint32_t number, std::uint64_t steps);

Registry make_shared_registry();

/// Lets `forward_at_gate` go on.
void open_gate();

/// A handle that shows what its context reads.
struct Opened : nn::SharedModule<Layers> {
  explicit Opened(const nn::SharedModule<Layers>& other) : nn::SharedModule<Layers>(other) {}
  Future<nn::Reading> read() const { return open(); }
};

/// A trainer that a test moves. Threads: that of the test.
class ByHandTrainer {
 public:
  /// @param net  at `worker`
  ByHandTrainer(Worker& worker, nn::SharedModule<Layers> net) : worker_(worker), net_(std::move(net)) {}
  ~ByHandTrainer() { end(); }
  ByHandTrainer(const ByHandTrainer&) = delete;
  ByHandTrainer& operator=(const ByHandTrainer&) = delete;

  nn::SharedModule<Layers>& net() { return net_; }
  autograd::Context& context() { return *context_; }
  /// Runs `code` as the trainer's, in its context if it has one.
  template <class F>
  auto act(F code) {
    const AmbientSwap swap(&ambient_);
    return code();
  }
  void begin() {
    act([&] { context_.emplace(worker_); });
  }
  void end() {
    act([&] { context_.reset(); });
  }
  Future<at::Tensor> forward(std::uint64_t batch) {
    return act([&] { return net_.forward_async(input_of(batch)); });
  }
  Result<void> backward(const at::Tensor& y, std::uint64_t batch) {
    return act([&] { return context_->try_backward({at::mse_loss(y, target_of(batch))}); });
  }
  Future<void> backward_async(const at::Tensor& y, std::uint64_t batch) {
    return act([&] { return context_->backward_async({at::mse_loss(y, target_of(batch))}); });
  }
  Future<nn::StepResult> step(std::uint64_t batch) {
    return act([&] { return net_.step_async(*context_, batch); });
  }
  /// Begins a context, reads and computes a gradient.
  void compute(std::uint64_t batch) {
    begin();
    backward(forward(batch).get(), batch).value();
  }

 private:
  Worker& worker_;
  nn::SharedModule<Layers> net_;
  Ambient ambient_;
  std::optional<autograd::Context> context_;
};

/// A worker that owns the module, four for trainers, and one that only makes the module.
class SharedCluster {
 protected:
  explicit SharedCluster(std::uint64_t seed);
  ~SharedCluster();

  static constexpr int kSeed = 3;  // of the module
  std::string log_path() const { return folder_ / "steps"; }
  /// Makes the module at "ps", with a log.
  nn::SharedModule<Layers> make(const nn::ConsistencyOptions& consistency, std::uint32_t trainers);
  /// Returns a handle of it that arrived at another worker.
  nn::SharedModule<Layers> handle_at(const std::string& worker, const nn::SharedModule<Layers>& net);
  /// Returns trainer `number`, which has joined at its worker.
  std::unique_ptr<ByHandTrainer> trainer(std::uint32_t number, const nn::SharedModule<Layers>& net);
  void expect_replay(const nn::SharedModule<Layers>& net);

  Folder folder_;
  const optim::Algorithm algorithm_ = optim::SGD{.lr = 0.2, .momentum = 0.9};
  testing::Cluster cluster_;
};

}  // namespace caftan::test
