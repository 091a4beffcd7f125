// The gradients of a backward pass reach the buckets: each once, those of the last layer first, equal to torch's own.
#include "ps_bench/bucket_hooks.hpp"

#include <ATen/ops/allclose.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps_bench/data.hpp"
#include "ps_bench/dummy_model.hpp"

namespace caftan::ps_bench::bucket_hooks_test {
namespace {

using ::testing::ElementsAre;

constexpr ModelConfig kModel{.num_embeddings = 8, .embedding_dim = 4, .dense_layers = 2};
const Samples kSamples = make_samples({.samples = 3, .length = 5, .max_value = 4}, 1);

/// Returns what BucketHooks gives of a model's loss, and in which order.
std::vector<std::vector<at::Tensor>> taken(const DummyModel& model, const std::vector<Bucket>& buckets,
                                           std::vector<std::size_t>& order) {
  std::vector<std::vector<at::Tensor>> all(buckets.size());
  BucketHooks hooks(model.parameters(), buckets, [&](std::size_t bucket, std::vector<at::Tensor> gradients) {
    order.push_back(bucket);
    all[bucket] = std::move(gradients);
  });
  hooks.backward(loss_of(model.forward(kSamples.inputs), kSamples.targets));
  return all;
}

TEST(BucketHooks, GiveEachBucketOnceTheLastLayerFirst) {
  const DummyModel model(kModel, 1);
  std::vector<std::size_t> order;
  const auto all = taken(model, make_buckets(shapes_of(kModel), 80), order);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  for (const at::Tensor& parameter : model.parameters()) EXPECT_FALSE(parameter.grad().defined());
  loss_of(model.forward(kSamples.inputs), kSamples.targets).backward();
  ASSERT_THAT(all, ::testing::SizeIs(3));
  EXPECT_TRUE(at::allclose(all[0][0], model.parameters()[4].grad()));
  EXPECT_TRUE(at::allclose(all[0][1], model.parameters()[3].grad()));
  EXPECT_TRUE(at::allclose(all[1][1], model.parameters()[1].grad()));
  ASSERT_TRUE(all[2][0].is_sparse());
  EXPECT_TRUE(all[2][0].is_coalesced());
  EXPECT_TRUE(at::allclose(all[2][0].to_dense(), model.parameters()[0].grad().to_dense()));
}

TEST(BucketHooks, GiveADenseGradientOfATableThatIsNotSparse) {
  ModelConfig dense = kModel;
  dense.sparse = false;
  std::vector<std::size_t> order;
  const auto all = taken(DummyModel(dense, 1), make_buckets(shapes_of(dense), 1 << 20), order);
  EXPECT_THAT(order, ElementsAre(0));
  EXPECT_EQ(all[0].back().layout(), at::kStrided);
  EXPECT_EQ(all[0].back().sizes(), (std::vector<std::int64_t>{8, 4}));
}

TEST(BucketHooks, LeaveNoHookBehind) {
  const DummyModel model(kModel, 1);
  std::vector<std::size_t> order;
  (void)taken(model, make_buckets(shapes_of(kModel), 80), order);
  loss_of(model.forward(kSamples.inputs), kSamples.targets).backward();
  EXPECT_THAT(order, ElementsAre(0, 1, 2)) << "a pass after the hooks' end";
}

}  // namespace
}  // namespace caftan::ps_bench::bucket_hooks_test
