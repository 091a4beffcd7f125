// Replicated modules over real workers: means in the context, unused and sparse parameters, uneven inputs, and failures
// at one replica that are failures at all.
#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caftan/autograd/checkpoint.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/nn/replicated.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "group_threads.hpp"

namespace caftan::test::replicated_test {
namespace {

using autograd::Context;
using nn::Replicated;
using nn::ReplicatedOptions;
using ::testing::HasSubstr;

at::Tensor ramp(double from, at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::linspace(from, from + 1, count).view(sizes).contiguous().requires_grad_(true);
}

/// Two layers; the second one is used only when asked for.
struct Layers {
  explicit Layers(double from) : first(ramp(from, {3, 2})), second(ramp(-from, {2, 2})) {}
  std::vector<nn::NamedTensor> named_parameters() const { return {{"first", first}, {"second", second}}; }
  at::Tensor forward(const at::Tensor& x, bool both = true) const {
    const at::Tensor y = x.matmul(first).tanh();
    return both ? y.matmul(second) : y;
  }
  at::Tensor first, second;
};

struct Table {
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight}}; }
  at::Tensor forward(const at::Tensor& ids) const { return at::embedding(weight, ids, -1, false, true); }
  at::Tensor weight = ramp(0, {5, 2});
};

struct WithBuffer {
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight}}; }
  std::vector<nn::NamedTensor> named_buffers() const { return {{"seen", seen}}; }
  at::Tensor forward(const at::Tensor& x) const { return x * weight; }
  at::Tensor weight = ramp(1, {2});
  at::Tensor seen = at::zeros({2});
};

at::Tensor input_of(int rank) { return at::linspace(rank, rank + 2, 12).view({4, 3}); }

/// Returns the means of the gradients of all ranks, computed without calls.
std::vector<at::Tensor> local_means(int ranks, const std::vector<int>& active, double over) {
  (void)ranks;
  std::vector<at::Tensor> sums(2);
  for (const int rank : active) {
    const Layers net(0);
    net.forward(input_of(rank)).sum().backward();
    sums[0] = sums[0].defined() ? sums[0] + net.first.grad() : net.first.grad();
    sums[1] = sums[1].defined() ? sums[1] + net.second.grad() : net.second.grad();
  }
  return {sums[0] / over, sums[1] / over};
}

class Replicas : public ::testing::Test {
 protected:
  template <class Net>
  using Made = std::vector<std::unique_ptr<Replicated<Net>>>;

  /// Makes a replica at each worker, rank r's from its own number.
  Made<Layers> make(const ReplicatedOptions& options = {}) {
    Made<Layers> nets(groups_.size());
    workers_.each([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      nets[at] = std::make_unique<Replicated<Layers>>(workers_[rank], groups_[at],
                                                      std::make_shared<Layers>(rank == 0 ? 0 : 5.0 * rank), options);
    });
    return nets;
  }

  GroupThreads workers_{3};
  std::vector<Group> groups_ = workers_.join();
};

TEST_F(Replicas, RP1_AllBeginWithTheBitsOfRank0) {
  const auto nets = make();
  for (const auto& net : nets) {
    EXPECT_TRUE(net->module()->first.equal(ramp(0, {3, 2})));
    EXPECT_EQ(net->hash(), nets[0]->hash());
    EXPECT_EQ(net->parameters().size(), 2U);
  }
}

TEST_F(Replicas, RP1_OtherParametersAreFound) {
  workers_.each([&](int rank) {
    struct Other {
      std::vector<nn::NamedTensor> named_parameters() const { return {{name, weight}}; }
      std::string name;
      at::Tensor weight = ramp(0, {2});
    };
    const auto group = groups_[static_cast<std::size_t>(rank)];
    const auto made =
        Replicated<Other>::try_make(workers_[rank], group, std::make_shared<Other>(Other{rank == 2 ? "w" : "v"}));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), Errc::invalid_config);
    EXPECT_THAT(made.error().text(), HasSubstr("w2"));
  });
}

TEST_F(Replicas, RP2_APassBooksTheMeansInTheContext) {
  for (const std::uint64_t bucket : {1ULL, 1ULL << 20}) {
    const auto nets = make({.bucket_bytes = bucket});
    const auto expected = local_means(3, {0, 1, 2}, 3);
    std::vector<std::vector<at::Tensor>> got(3);
    workers_.each([&](int rank) {
      const auto& net = *nets[static_cast<std::size_t>(rank)];
      const Context context(workers_[rank]);
      context.backward(net.forward(input_of(rank)).sum());
      const auto gradients = context.gradients();
      got[static_cast<std::size_t>(rank)] = {gradients.of(net.module()->first), gradients.of(net.module()->second)};
      EXPECT_FALSE(net.module()->first.grad().defined());
      context.backward(net.forward(input_of(rank)).sum());
      EXPECT_TRUE(context.gradients().of(net.module()->first).allclose(expected[0] * 2)) << "passes add up";
    });
    for (const auto& mine : got) {
      for (const std::size_t leaf : {0U, 1U}) {
        EXPECT_TRUE(mine[leaf].allclose(expected[leaf]));
        EXPECT_TRUE(mine[leaf].equal(got[0][leaf])) << "the same bits";
      }
    }
  }
}

TEST_F(Replicas, ReplicasAreEqualAfterEveryStep) {
  const auto nets = make();
  workers_.each([&](int rank) {
    const auto& net = *nets[static_cast<std::size_t>(rank)];
    optim::DistributedOptimizer optimizer(workers_[rank], net.parameters(), optim::Adam{.lr = 0.1});
    const std::uint64_t before = net.hash();
    for (int step = 0; step < 5; ++step) {
      const Context context(workers_[rank]);
      context.backward(net.forward(input_of(rank + step)).square().sum());
      optimizer.step(context);
      net.check_equal().value();
    }
    EXPECT_NE(net.hash(), before);
    // One replica goes its own way.
    if (rank == 1) {
      const at::NoGradGuard no_grad;
      net.module()->first.add_(1);
    }
    const auto equal = net.check_equal();
    ASSERT_FALSE(equal);
    EXPECT_EQ(equal.error().code(), Errc::invalid_config);
    EXPECT_THAT(equal.error().text(), HasSubstr("at w1 differs"));
  });
}

/// A group that notes how many values each of its reductions has.
class Noted final : public collectives::Collectives {
 public:
  explicit Noted(Group group) : group_(std::move(group)) {}
  int rank() const noexcept override { return group_->rank(); }
  const std::vector<std::string>& members() const noexcept override { return group_->members(); }
  collectives::Backend backend() const noexcept override { return group_->backend(); }
  Future<collectives::Tensors> all_reduce(const collectives::Tensors& tensors,
                                          collectives::Reduction reduction) override {
    sizes.push_back(tensors.front().numel());
    return group_->all_reduce(tensors, reduction);
  }
  Future<collectives::Tensors> broadcast(const collectives::Tensors& tensors, int root) override {
    return group_->broadcast(tensors, root);
  }
  Future<std::vector<collectives::Tensors>> all_gather(const collectives::Tensors& tensors) override {
    return group_->all_gather(tensors);
  }
  Future<void> barrier() override { return group_->barrier(); }
  void fail(const Error& reason) override { group_->fail(reason); }

  std::vector<std::int64_t> sizes;

 private:
  const Group group_;
};

TEST_F(Replicas, RP3_BucketsTravelInTheOppositeOrderOfTheParametersAtAll) {
  for (const std::uint64_t bucket : {1ULL, 1ULL << 20}) {
    workers_.each([&](int rank) {
      const auto noted = std::make_shared<Noted>(groups_[static_cast<std::size_t>(rank)]);
      const Replicated<Layers> net(workers_[rank], noted, std::make_shared<Layers>(0), {.bucket_bytes = bucket});
      const Context context(workers_[rank]);
      context.backward(net.forward(input_of(rank)).sum());
      EXPECT_EQ(noted->sizes, bucket == 1 ? (std::vector<std::int64_t>{4, 6}) : (std::vector<std::int64_t>{10}));
    });
  }
}

TEST_F(Replicas, RP8_ASecondPassMeanwhileIsBusy) {
  const auto nets = make();
  std::vector<Future<void>> first;
  std::vector<std::unique_ptr<Context>> contexts;
  contexts.push_back(std::make_unique<Context>(workers_[0]));
  first.push_back(contexts[0]->backward_async({nets[0]->forward(input_of(0)).sum()}));
  EXPECT_FALSE(first[0].wait_for(std::chrono::milliseconds(20))) << "the others have not begun";
  std::thread([&] {
    const Context second(workers_[0]);
    const auto done = second.try_backward({nets[0]->forward(input_of(0)).sum()});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Errc::pass_busy) << done.error().message();
  }).join();
}

TEST_F(Replicas, RP4_AnUnusedParameterIsAnErrorAtAll) {
  const auto nets = make();
  workers_.each([&](int rank) {
    const auto& net = *nets[static_cast<std::size_t>(rank)];
    const Context context(workers_[rank]);
    const auto done = context.try_backward({net.forward(input_of(rank), rank != 1).sum()});
    ASSERT_FALSE(done) << rank;
    EXPECT_EQ(done.error().code(), Errc::backward_failed) << done.error().message();
    EXPECT_THAT(done.error().message(), HasSubstr("'second'"));
    EXPECT_THAT(done.error().message(), HasSubstr("find_unused_parameters"));
    EXPECT_TRUE(context.gradients().empty());
  });
}

TEST_F(Replicas, RP4_WithTheOptionItCountsAsZeros) {
  const auto nets = make({.find_unused_parameters = true});
  workers_.each([&](int rank) {
    const auto& net = *nets[static_cast<std::size_t>(rank)];
    {
      const Context context(workers_[rank]);
      context.backward(net.forward(input_of(rank), rank == 1).sum());
      const at::Tensor mean = context.gradients().of(net.module()->second);
      ASSERT_TRUE(mean.defined());
      EXPECT_TRUE(mean.allclose(local_means(3, {1}, 3)[1]));
    }
    const Context context(workers_[rank]);
    context.backward(net.forward(input_of(rank), false).sum());
    EXPECT_FALSE(context.gradients().of(net.module()->second).defined()) << "no replica has used it";
    EXPECT_TRUE(context.gradients().of(net.module()->first).defined());
  });
}

TEST_F(Replicas, RP5_ASparseMeanHasTheEntriesOfAll) {
  workers_.each([&](int rank) {
    const Replicated<Table> net(workers_[rank], groups_[static_cast<std::size_t>(rank)], std::make_shared<Table>(),
                                {.sparse_parameters = {"weight"}});
    const Context context(workers_[rank]);
    context.backward(net.forward(at::tensor({0, rank}, at::kLong)).sum());
    const at::Tensor mean = context.gradients().of(net.module()->weight);
    ASSERT_TRUE(mean.is_sparse());
    const at::Tensor expected = at::tensor({4.0, 1.0, 1.0, 0.0, 0.0}, at::kFloat).div(3).view({5, 1}).expand({5, 2});
    EXPECT_TRUE(mean.to_dense().allclose(expected));
    EXPECT_EQ(mean._indices().size(1), 3);
  });
}

TEST_F(Replicas, RP5_TheOtherLayoutNamesTheOption) {
  // Made before any pass: the group fails with the first pass, and with it a constructor that is not over elsewhere.
  Made<Table> nets(groups_.size());
  workers_.each([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    nets[at] = std::make_unique<Replicated<Table>>(workers_[rank], groups_[at], std::make_shared<Table>());
  });
  workers_.each([&](int rank) {
    const auto& net = *nets[static_cast<std::size_t>(rank)];
    const Context context(workers_[rank]);
    const auto done = context.try_backward({net.forward(at::tensor({0, rank}, at::kLong)).sum()});
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message(), HasSubstr("sparse_parameters"));
  });
}

TEST_F(Replicas, RP6_APassThatFailsAtOneReplicaFailsAtAll) {
  const auto nets = make();
  workers_.each([&](int rank) {
    const auto& net = *nets[static_cast<std::size_t>(rank)];
    const Context context(workers_[rank]);
    const at::Tensor loss = net.forward(input_of(rank)).sum();
    if (rank == 2) {
      const at::NoGradGuard no_grad;
      net.module()->second.add_(1);  // the graph needs the old values
    }
    const auto done = context.try_backward({loss});
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message(), HasSubstr("modified by an inplace operation")) << rank;
    EXPECT_FALSE(context.try_backward({net.forward(input_of(rank)).sum()})) << "the group has failed";
  });
}

TEST_F(Replicas, ALostReplicaIsPeerDownInTheOpenPassOfAllOthers) {
  const auto nets = make();
  std::vector<Error> errors(3);
  std::thread other([&] {
    const Context context(workers_[1]);
    errors[1] = context.try_backward({nets[1]->forward(input_of(1)).sum()}).error();
  });
  std::thread stops([&] { workers_.stop(2); });
  {
    const Context context(workers_[0]);
    errors[0] = context.try_backward({nets[0]->forward(input_of(0)).sum()}).error();
  }
  other.join();
  stops.join();
  for (const int rank : {0, 1}) {
    EXPECT_EQ(errors[static_cast<std::size_t>(rank)].code(), Errc::peer_down)
        << errors[static_cast<std::size_t>(rank)].message();
    EXPECT_THAT(errors[static_cast<std::size_t>(rank)].message(), HasSubstr("w2"));
  }
}

TEST_F(Replicas, RP7_UnevenInputsEndWithJoin) {
  for (const auto over : {ReplicatedOptions::MeanOver::all, ReplicatedOptions::MeanOver::active}) {
    const auto nets = make({.uneven_inputs = true, .mean_over = over});
    workers_.each([&](int rank) {
      const auto& net = *nets[static_cast<std::size_t>(rank)];
      optim::DistributedOptimizer optimizer(workers_[rank], net.parameters(), optim::SGD{.lr = 0.1});
      for (int step = 0; step <= rank; ++step) {  // rank 0 has one batch, rank 2 has three
        const Context context(workers_[rank]);
        context.backward(net.forward(input_of(rank)).sum());
        if (step == 1) {
          // Rank 0 has joined.
          EXPECT_EQ(context.gradients().of(net.module()->first).defined(), true);
        }
        optimizer.step(context);
      }
      net.join().value();
      net.check_equal().value();
    });
    EXPECT_FALSE(nets[0]->module()->first.equal(ramp(0, {3, 2})));
  }
}

TEST_F(Replicas, RP7_AMeanIsOverAllOrOverThoseWithData) {
  for (const bool active : {false, true}) {
    const auto over = active ? ReplicatedOptions::MeanOver::active : ReplicatedOptions::MeanOver::all;
    const auto nets = make({.uneven_inputs = true, .mean_over = over});
    workers_.each([&](int rank) {
      const auto& net = *nets[static_cast<std::size_t>(rank)];
      if (rank != 0) {
        const Context context(workers_[rank]);
        context.backward(net.forward(input_of(rank)).sum());
        const auto expected = local_means(3, {1, 2}, active ? 2 : 3);
        EXPECT_TRUE(context.gradients().of(net.module()->first).allclose(expected[0])) << active;
      }
      net.join().value();
    });
  }
}

TEST_F(Replicas, RP9_ARecordedForwardNeedsAContext) {
  const auto nets = make();
  const auto outside = nets[0]->enter_context();
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code(), Errc::unknown_context);
  const at::NoGradGuard no_grad;
  EXPECT_EQ(nets[0]->forward(input_of(0)).sizes(), at::IntArrayRef({4, 2})) << "a validation is local";
}

TEST_F(Replicas, RP10_BuffersAreThoseOfRank0AtEachRecordedForward) {
  workers_.each([&](int rank) {
    const auto module = std::make_shared<WithBuffer>();
    const Replicated<WithBuffer> net(workers_[rank], groups_[static_cast<std::size_t>(rank)], module);
    module->seen.fill_(rank + 1);
    const Context context(workers_[rank]);
    context.backward(net.forward(at::ones({2})).sum());
    EXPECT_TRUE(module->seen.equal(at::ones({2})));
  });
}

TEST_F(Replicas, ACheckpointedSegmentGivesItsGradientsWhole) {
  const auto nets = make();
  workers_.each([&](int rank) {
    const auto& net = *nets[static_cast<std::size_t>(rank)];
    const Context context(workers_[rank]);
    net.enter_context().value();
    const auto segment = [&](const std::vector<at::Tensor>& x) {
      return std::vector<at::Tensor>{net.module()->forward(x[0])};
    };
    const at::Tensor x = input_of(rank).requires_grad_(true);
    context.backward(autograd::checkpoint(segment, {x}).front().sum());
    EXPECT_TRUE(context.gradients().of(net.module()->first).allclose(local_means(3, {0, 1, 2}, 3)[0]));
  });
}

TEST_F(Replicas, WhatCannotBeReplicatedIsRefused) {
  const auto code_of = [&](const ReplicatedOptions& options) {
    return Replicated<WithBuffer>::try_make(workers_[0], groups_[0], std::make_shared<WithBuffer>(), options)
        .error()
        .code();
  };
  EXPECT_EQ(code_of({.bucket_bytes = 0}), Errc::bad_arguments);
  EXPECT_EQ(code_of({.sparse_parameters = {"w"}}), Errc::bad_arguments);
  EXPECT_EQ(code_of({.uneven_inputs = true}), Errc::bad_arguments);
  struct Frozen {
    std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", at::ones({2})}}; }
  };
  const auto frozen = Replicated<Frozen>::try_make(workers_[0], groups_[0], std::make_shared<Frozen>());
  EXPECT_EQ(frozen.error().code(), Errc::bad_arguments);
  EXPECT_EQ(make()[0]->join().error().code(), Errc::bad_arguments) << "without uneven_inputs";
}

}  // namespace
}  // namespace caftan::test::replicated_test
