// What servers, trainers, data and model cannot do together is found before anything starts.
#include "ps_bench/requirements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::ps_bench::requirements_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = app::MissingRequirement::Kind;

/// Expects one finding, and returns it as "key: text".
std::string one(const MasterConfig& config, std::uint32_t servers = 1, std::uint32_t trainers = 2,
                Kind kind = Kind::file) {
  const auto missing = find_missing(config, servers, trainers);
  EXPECT_THAT(missing, SizeIs(1));
  if (missing.empty()) return {};
  EXPECT_EQ(missing.front().kind, kind);
  return missing.front().keys.front() + ": " + missing.front().text;
}

TEST(Requirements, NothingIsMissing) {
  EXPECT_THAT(find_missing({}, 1, 2), IsEmpty());
  EXPECT_THAT(find_missing({}, 1, 1), IsEmpty());
  EXPECT_THAT(find_missing({}, 5, 10), IsEmpty());
  EXPECT_THAT(find_missing({.layout = Layout::shards}, 3, 2), IsEmpty()) << "three buckets";
}

TEST(Requirements, TrainersThatMakeNoGroups) {
  EXPECT_THAT(one({}, 3, 10), HasSubstr("layout: groups: 10 trainers cannot be dealt to 3 servers"));
  EXPECT_THAT(one({}, 5, 2), HasSubstr("2 trainers cannot be dealt to 5 servers"));
}

TEST(Requirements, MoreServersThanBuckets) {
  EXPECT_THAT(one({.layout = Layout::shards}, 4, 2), HasSubstr("bucket: shards: 4 servers for 3 buckets"));
}

TEST(Requirements, NumbersThatTheModelDoesNotTake) {
  EXPECT_THAT(one({.model = {.num_embeddings = 99}}),
              HasSubstr("data.max_value: max_value is 100, but the model has 99"));
  EXPECT_THAT(one({.model = {.embedding_dim = 99}}), HasSubstr("and 99 outputs for targets"));
}

TEST(Requirements, SamplesThatCannotBeDealt) {
  EXPECT_THAT(one({.batch = 50}, 1, 3), HasSubstr("batch: 100 samples are 2 batches of 50 for 3 trainers"));
  EXPECT_THAT(one({}, 1, 3, Kind::doubt), HasSubstr("of 10 batches 1 are left out, since each of 3 trainers has 3"));
  EXPECT_THAT(one({.data = {.max_value = 1, .sparsity = 50}}), HasSubstr("leaves none of 1 value"));
  EXPECT_THAT(one({.data = {.samples = 1'000'000, .length = 100}}), HasSubstr("are more than 67108864 numbers"));
}

TEST(Requirements, AModelThatNoMemoryHolds) {
  EXPECT_THAT(one({.model = {.num_embeddings = 1 << 24, .embedding_dim = 65536, .dense_layers = 1024}}),
              HasSubstr("model.embedding_dim: a model of "));
}

}  // namespace
}  // namespace caftan::ps_bench::requirements_test
