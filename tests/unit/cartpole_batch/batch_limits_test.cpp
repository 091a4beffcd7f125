#include "batch_settings/batch_limits.hpp"

#include <gtest/gtest.h>

namespace caftan::batch_settings::batch_limits_test {
namespace {

using namespace std::chrono_literals;

TEST(BatchLimitsOfConfig, ABatchHasOneRequestOfEachObserverUnlessTheFileSaysOtherwise) {
  BatchConfig config;
  EXPECT_EQ(limits_of(config, 7).max_size, 7U);
  EXPECT_EQ(limits_of(config, 7).max_wait, 10ms);
  config.max_size = 3;
  config.max_wait = 1s;
  EXPECT_EQ(limits_of(config, 7).max_size, 3U);
  EXPECT_EQ(limits_of(config, 7).max_wait, 1s);
}

TEST(BatchLimitsOfConfig, NoBatchWaitsForMoreRequestsThanThereAreObservers) {
  BatchConfig config;
  config.max_size = 5;
  EXPECT_EQ(limits_of(config, 7).max_size, 5U);
  EXPECT_EQ(limits_of(config, 4).max_size, 4U);
  EXPECT_EQ(limits_of(config, 0).max_size, 1U);
  EXPECT_TRUE(find_missing(config, 5).empty());
  const auto found = find_missing(config, 4);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, app::MissingRequirement::Kind::note);
  EXPECT_NE(found[0].text.find("a batch has 4 requests at most"), std::string::npos) << found[0].text;
  config.enabled = false;
  EXPECT_TRUE(find_missing(config, 4).empty()) << "there are no batches";
}

}  // namespace
}  // namespace caftan::batch_settings::batch_limits_test
