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

TEST(BatchLimitsOfConfig, ABatchThatNeverFillsIsADoubt) {
  BatchConfig config;
  EXPECT_TRUE(find_missing(config, 4).empty());
  config.max_size = 4;
  EXPECT_TRUE(find_missing(config, 4).empty());
  config.max_size = 5;
  const auto found = find_missing(config, 4);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, app::MissingRequirement::Kind::doubt);
  EXPECT_NE(found[0].text.find("batches of 5 never fill"), std::string::npos) << found[0].text;
  config.max_wait = 0ns;
  EXPECT_TRUE(find_missing(config, 4).empty()) << "nothing waits";
  config.max_wait = 1ms;
  config.enabled = false;
  EXPECT_TRUE(find_missing(config, 4).empty()) << "there are no batches";
}

}  // namespace
}  // namespace caftan::batch_settings::batch_limits_test
