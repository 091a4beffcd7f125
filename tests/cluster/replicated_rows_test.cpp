// Group 23 of PyTorch's own suite: data parallelism mixed with distributed autograd. Rows 23.08 to 23.12 are pipelines
// on GPUs. DistributedDataParallel itself is a Python class; what its rows check holds for nn::Replicated:
//   23.02, 23.03  the wrapper around a model that holds references to other workers: Replicated takes the local layers,
//                 of which the wrapper averages the gradients there, too
//   23.05, 23.06  gradients of a local backward pass in .grad beside those of a context: Replicated has those of
//   contexts
//                 alone, and is compared with a local model
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/nn/replicated.hpp"
#include "group_threads.hpp"

namespace caftan::test::replicated_rows_test {
namespace {

using autograd::Context;
using nn::Replicated;

constexpr int kTrainers = 4;
constexpr std::int64_t kSparse = 3, kDense = 2, kHidden = 3;

at::Tensor ramp(double from, at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::linspace(from, from + 1, count).view(sizes).contiguous().requires_grad_(true);
}

/// The table of the suite's remote worker.
struct RemoteTable {
  at::Tensor forward(const at::Tensor& ids) const { return at::embedding(weight, ids); }
  at::Tensor weight = ramp(0.25, {kSparse, kSparse});
};
/// The layer of the suite's remote worker.
struct RemoteNet {
  at::Tensor forward(const at::Tensor& x) const { return x.matmul(weight).relu(); }
  at::Tensor weight = ramp(0.1, {kDense + kSparse, kHidden});
};

/// A linear layer of a trainer.
struct Linear {
  Linear(std::int64_t in, std::int64_t out) : weight(ramp(-0.3, {in, out})), bias(ramp(0.2, {out})) {}
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight}, {"bias", bias}}; }
  at::Tensor forward(const at::Tensor& x) const { return x.matmul(weight) + bias; }
  at::Tensor weight, bias;
};
/// Both local layers of the hybrid model as one module, around the part that is elsewhere.
struct LocalLayers {
  std::vector<nn::NamedTensor> named_parameters() const {
    return {{"fc1.weight", fc1.weight}, {"fc1.bias", fc1.bias}, {"fc2.weight", fc2.weight}, {"fc2.bias", fc2.bias}};
  }
  Linear fc1{kDense, kDense}, fc2{kHidden, 1};
};

/// One example of a trainer; those of all trainers cancel out.
struct Example {
  at::Tensor dense, ids;
  double value;
};
Example example_of(int trainer, int number) {
  const double x = number % 2 == 0 ? 1 : -0.5;
  return {at::tensor({x, 0.5 + number}, at::kFloat).view({1, 2}), at::tensor({number % 3}, at::kLong),
          trainer % 2 == 0 ? 1.0 : -1.0};
}

class HybridRows : public ::testing::Test {
 protected:
  HybridRows() : workers_(kTrainers, {"remote", "master"}, registry()) {}
  static Registry registry() {
    Registry registry;
    registry.add<RemoteTable>("table").constructor<>().method<&RemoteTable::forward>("forward");
    registry.add<RemoteNet>("net").constructor<>().method<&RemoteNet::forward>("forward");
    return registry;
  }

  /// The hybrid model's output for one example: local, then remote, then local.
  at::Tensor forward(int rank, const LocalLayers& layers, const Example& example) {
    Worker& worker = workers_[rank];
    const auto table = worker.get_or_create<RemoteTable>("remote", "table");
    const auto net = worker.get_or_create<RemoteNet>("remote", "net");
    const at::Tensor sparse = table.rpc_sync<&RemoteTable::forward>(example.ids);
    const at::Tensor dense = layers.fc1.forward(example.dense);
    return layers.fc2.forward(net.rpc_sync<&RemoteNet::forward>(at::cat({dense, sparse}, 1)));
  }
  at::Tensor loss(int rank, const LocalLayers& layers, int number) {
    const Example example = example_of(rank, number);
    return (forward(rank, layers, example) * example.value).sum();
  }

  GroupThreads workers_;
  std::vector<Group> groups_ = workers_.join();
};

TEST_F(HybridRows, Row23_01_WithoutReplicationEachTrainerHasGradientsOfItsOwn) {
  workers_.each([&](int rank) {
    const LocalLayers layers;
    const Context context(workers_[rank]);
    context.backward(loss(rank, layers, 0));
    for (const auto& named : layers.named_parameters()) {
      const at::Tensor gradient = context.gradients().of(named.tensor);
      ASSERT_TRUE(gradient.defined()) << named.name;
      EXPECT_NE(gradient.abs().sum().item<double>(), 0) << named.name;
    }
  });
}

TEST_F(HybridRows, Row23_02_GradientsOfExamplesThatCancelOutAreZeros) {
  workers_.each([&](int rank) {
    const auto layers = std::make_shared<LocalLayers>();
    const Replicated<LocalLayers> net(workers_[rank], groups_[static_cast<std::size_t>(rank)], layers);
    for (int round = 0; round < 3; ++round) {
      const Context context(workers_[rank]);
      net.enter_context().value();
      context.backward(loss(rank, *layers, round));
      for (const auto& named : layers->named_parameters()) {
        EXPECT_EQ(context.gradients().of(named.tensor).abs().sum().item<double>(), 0) << named.name;
      }
    }
  });
}

TEST_F(HybridRows, Row23_03_AlsoWithHalfTheTrainersOutOfData) {
  workers_.each([&](int rank) {
    const auto layers = std::make_shared<LocalLayers>();
    const Replicated<LocalLayers> net(workers_[rank], groups_[static_cast<std::size_t>(rank)], layers,
                                      {.uneven_inputs = true});
    const int rounds = rank < 2 ? 1 : 3;
    for (int round = 0; round < rounds; ++round) {
      const Context context(workers_[rank]);
      net.enter_context().value();
      context.backward(loss(rank, *layers, round));
      for (const auto& named : layers->named_parameters()) {
        EXPECT_EQ(context.gradients().of(named.tensor).abs().sum().item<double>(), 0) << named.name;
      }
    }
    net.join().value();
    net.check_equal().value();
  });
}

TEST_F(HybridRows, Row23_04_OnlyTheReplicatedLayersGradientsCancelOut) {
  workers_.each([&](int rank) {
    const auto layers = std::make_shared<LocalLayers>();
    const auto second = std::shared_ptr<Linear>(layers, &layers->fc2);
    const Replicated<Linear> net(workers_[rank], groups_[static_cast<std::size_t>(rank)], second);
    for (int round = 0; round < 3; ++round) {
      const Context context(workers_[rank]);
      net.enter_context().value();
      context.backward(loss(rank, *layers, round));
      const auto gradients = context.gradients();
      EXPECT_EQ(gradients.of(layers->fc2.weight).abs().sum().item<double>(), 0);
      EXPECT_EQ(gradients.of(layers->fc2.bias).abs().sum().item<double>(), 0);
      EXPECT_NE(gradients.of(layers->fc1.weight).abs().sum().item<double>(), 0);
    }
  });
}

at::Tensor batch_of(int rank, int number) { return at::linspace(rank, rank + number + 1, 6).view({3, 2}); }

TEST_F(HybridRows, Row23_05_MeansOfAContextEqualThoseOfLocalPassesWithUnevenInputs) {
  workers_.each([&](int rank) {
    const auto layer = std::make_shared<Linear>(2, 2);
    const Replicated<Linear> net(workers_[rank], groups_[static_cast<std::size_t>(rank)], layer,
                                 {.uneven_inputs = true});
    for (int number = 0; number <= rank; ++number) {
      at::Tensor expected = at::zeros_like(layer->weight);
      for (int other = number; other < kTrainers; ++other) {  // the ranks below have joined
        const Linear local(2, 2);
        local.forward(batch_of(other, number)).norm().backward();
        expected = expected + local.weight.grad();
      }
      const Context context(workers_[rank]);
      context.backward(net.forward(batch_of(rank, number)).norm());
      EXPECT_TRUE(context.gradients().of(layer->weight).allclose(expected / kTrainers)) << rank << ' ' << number;
    }
    net.join().value();
  });
}

struct SparseTable {
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight}}; }
  at::Tensor forward(const at::Tensor& ids) const { return at::embedding(weight, ids, -1, false, true); }
  at::Tensor weight = ramp(0, {10, 2});
};

TEST_F(HybridRows, Row23_06_ASparseGradientEqualsTheLocalOne) {
  workers_.each([&](int rank) {
    const auto table = std::make_shared<SparseTable>();
    const Replicated<SparseTable> net(workers_[rank], groups_[static_cast<std::size_t>(rank)], table,
                                      {.sparse_parameters = {"weight"}});
    at::Tensor expected = at::zeros({10, 2});
    for (int other = 0; other < kTrainers; ++other) {
      const SparseTable local;
      local.forward(at::tensor({0, other + 1}, at::kLong)).pow(2).sum().backward();
      expected = expected + local.weight.grad().to_dense();
    }
    const Context context(workers_[rank]);
    context.backward(net.forward(at::tensor({0, rank + 1}, at::kLong)).pow(2).sum());
    ASSERT_EQ(context.gradients().entries().size(), 1U);
    const at::Tensor gradient = context.gradients().of(table->weight);
    ASSERT_TRUE(gradient.is_sparse());
    EXPECT_TRUE(gradient.to_dense().allclose(expected / kTrainers));
  });
}

/// The remote linear layer of row 23.07.
class RemoteLinear {
 public:
  RemoteLinear() = default;
  std::vector<nn::NamedTensor> named_parameters() const { return layer_.named_parameters(); }
  at::Tensor forward(const at::Tensor& x) const { return layer_.forward(x); }
  at::Tensor weight_gradient(Worker& worker) const { return Context::current(worker).gradients().of(layer_.weight); }

 private:
  Linear layer_{2, 2};
};

TEST(RemoteLayerRows, Row23_07_ARemoteLayerBeforeAReplicatedOneEqualsTheLocalModel) {
  for (const bool names_device : {false, true}) {
    Registry registry;
    nn::add_module<RemoteLinear>(registry, "linear")
        .constructor<>()
        .method<&RemoteLinear::forward>("forward")
        .method<&RemoteLinear::weight_gradient>("weight_gradient");
    GroupThreads workers(kTrainers, {"remote"}, registry);
    const auto groups = workers.join();
    workers.each([&](int rank) {
      const nn::RemoteModule<RemoteLinear> remote(workers[rank], "w0");
      if (names_device) remote.to("cpu");
      const auto layer = std::make_shared<Linear>(2, 2);
      const Replicated<Linear> net(workers[rank], groups[static_cast<std::size_t>(rank)], layer);
      const Linear first(2, 2), second(2, 2);
      const at::Tensor x = batch_of(0, 0);  // the same at all, so that the mean is the local gradient
      second.forward(first.forward(x)).sum().backward();
      const Context context(workers[rank]);
      context.backward(net.forward(remote.forward(x)).sum());
      EXPECT_TRUE(context.gradients().of(layer->weight).allclose(second.weight.grad()));
      EXPECT_TRUE(remote.rpc_sync<&RemoteLinear::weight_gradient>().allclose(first.weight.grad()));
    });
  }
}

}  // namespace
}  // namespace caftan::test::replicated_rows_test
