// Which parameters there are, which travel together, and who sends what to whom.
#include "ps_bench/shapes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::ps_bench::shapes_test {
namespace {

using ::testing::ElementsAre;

constexpr ModelConfig kModel{.num_embeddings = 10, .embedding_dim = 4, .dense_layers = 2, .sparse = true};

TEST(Shapes, AreTableThenWeightAndBiasOfEachLayer) {
  EXPECT_THAT(shapes_of(kModel), ElementsAre(ParameterShape{{10, 4}, true}, ParameterShape{{4, 4}}, ParameterShape{{4}},
                                             ParameterShape{{4, 4}}, ParameterShape{{4}}));
  EXPECT_EQ(count_elements({{10, 4}}), 40);
}

TEST(Buckets, BeginWithTheLastParameterAndLeaveSparseOnesAlone) {
  const auto shapes = shapes_of(kModel);
  EXPECT_THAT(make_buckets(shapes, 80), ElementsAre(ElementsAre(4, 3), ElementsAre(2, 1), ElementsAre(0)));
  EXPECT_THAT(make_buckets(shapes, 96), ElementsAre(ElementsAre(4, 3, 2), ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(make_buckets(shapes, 1),
              ElementsAre(ElementsAre(4), ElementsAre(3), ElementsAre(2), ElementsAre(1), ElementsAre(0)))
      << "larger than a bucket";
  ModelConfig dense = kModel;
  dense.sparse = false;
  EXPECT_THAT(make_buckets(shapes_of(dense), 1 << 20), ElementsAre(ElementsAre(4, 3, 2, 1, 0)));
}

TEST(Buckets, NothingJoinsASparseOne) {
  const std::vector<ParameterShape> shapes{{{1}}, {{1}, true}, {{1}}};
  EXPECT_THAT(make_buckets(shapes, 100), ElementsAre(ElementsAre(2), ElementsAre(1), ElementsAre(0)));
}

TEST(Layouts, GroupsGiveEachServerItsOwnTrainers) {
  for (const std::uint32_t server : {0U, 1U}) {
    const TrainerRange range = trainers_of(Layout::groups, server, 2, 6);
    EXPECT_EQ(range.first, 3 * server);
    EXPECT_EQ(range.count, 3U);
    for (std::uint32_t trainer = 0; trainer < 6; ++trainer) {
      EXPECT_EQ(range.contains(trainer), trainer / 3 == server);
      for (const std::size_t bucket : {0U, 1U})
        EXPECT_EQ(server_of(Layout::groups, trainer, bucket, 2, 6), trainer / 3);
    }
  }
}

TEST(Layouts, ShardsGiveEachServerItsOwnBuckets) {
  EXPECT_EQ(trainers_of(Layout::shards, 1, 2, 3).count, 3U);
  EXPECT_EQ(trainers_of(Layout::shards, 1, 2, 3).first, 0U);
  for (std::size_t bucket = 0; bucket < 5; ++bucket) EXPECT_EQ(server_of(Layout::shards, 2, bucket, 2, 3), bucket % 2);
}

}  // namespace
}  // namespace caftan::ps_bench::shapes_test
