// The samples: which values they have, and which batches a trainer gets.
#include "ps_bench/data.hpp"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>

#include "ps_bench/dummy_model.hpp"
#include "ps_bench/shapes.hpp"

namespace caftan::ps_bench::data_test {
namespace {

std::set<std::int64_t> values_of(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<std::int64_t>();
  return {data, data + tensor.numel()};
}

TEST(Samples, HaveTheShareOfValuesThatSparsityLeaves) {
  for (const auto& [sparsity, used] : {std::pair{20, 80U}, std::pair{80, 20U}}) {
    const DataConfig config{.sparsity = sparsity};
    const Samples samples = make_samples(config, 1);
    EXPECT_EQ(samples.inputs.sizes(), (std::vector<std::int64_t>{100, 100}));
    EXPECT_EQ(used_values(config), used);
    const auto values = values_of(samples.inputs);
    EXPECT_EQ(values.size(), used) << "10,000 numbers leave none out";
    EXPECT_GE(*values.begin(), 0);
    EXPECT_LT(*values.rbegin(), 100);
    const auto targets = values_of(samples.targets);
    EXPECT_GE(*targets.begin(), 0);
    EXPECT_LT(*targets.rbegin(), 100);
    EXPECT_GT(targets.size(), 50U);
  }
}

TEST(Samples, FollowFromTheSeed) {
  const Samples samples = make_samples({}, 1);
  EXPECT_TRUE(at::equal(samples.inputs, make_samples({}, 1).inputs));
  EXPECT_FALSE(at::equal(samples.inputs, make_samples({}, 2).inputs));
  EXPECT_NE(values_of(samples.inputs), values_of(make_samples({}, 2).inputs)) << "other values are used";
}

TEST(Samples, AreDealtInTurnsAndEachTrainerHasAsMany) {
  const Samples samples = make_samples({.samples = 7, .length = 2}, 1);
  EXPECT_EQ(batches_of_each(7, 2, 2), 2);
  EXPECT_EQ(batches_of_each(7, 2, 3), 1) << "one of four is left out";
  EXPECT_EQ(batches_of_each(7, 2, 5), 0);
  const auto first = deal(samples, 2, 0, 2);
  const auto second = deal(samples, 2, 1, 2);
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_TRUE(at::equal(first[0].inputs, samples.inputs.narrow(0, 0, 2)));
  EXPECT_TRUE(at::equal(second[0].inputs, samples.inputs.narrow(0, 2, 2)));
  EXPECT_TRUE(at::equal(first[1].targets, samples.targets.narrow(0, 4, 2)));
  EXPECT_TRUE(at::equal(second[1].inputs, samples.inputs.narrow(0, 6, 1))) << "the last batch is smaller";
}

TEST(DummyModel, HasTheParametersOfItsShapesAndFollowsFromTheSeed) {
  const ModelConfig config{.num_embeddings = 8, .embedding_dim = 4, .dense_layers = 2};
  const DummyModel model(config, 1);
  const auto shapes = shapes_of(config);
  ASSERT_EQ(model.parameters().size(), shapes.size());
  const DummyModel same(config, 1);
  const DummyModel other(config, 2);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(model.parameters()[i].sizes(), at::IntArrayRef(shapes[i].sizes));
    EXPECT_TRUE(at::equal(model.parameters()[i], same.parameters()[i]));
    EXPECT_FALSE(at::equal(model.parameters()[i], other.parameters()[i]));
  }
}

TEST(DummyModel, GivesEachSampleTheSoftmaxOfTheMeanOfItsRows) {
  const DummyModel table({.num_embeddings = 8, .embedding_dim = 4, .dense_layers = 0}, 1);
  const Samples samples = make_samples({.samples = 3, .length = 5, .max_value = 4}, 1);
  const at::Tensor rows = table.parameters()[0].detach().index_select(0, samples.inputs.flatten());
  const at::Tensor expected = rows.view({3, 5, 4}).mean(1).softmax(1);
  EXPECT_TRUE(table.forward(samples.inputs).allclose(expected));
  const DummyModel deep({.num_embeddings = 8, .embedding_dim = 4, .dense_layers = 3}, 1);
  EXPECT_EQ(deep.forward(samples.inputs).sizes(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_FALSE(deep.forward(samples.inputs).allclose(expected)) << "its layers count";
}

}  // namespace
}  // namespace caftan::ps_bench::data_test
