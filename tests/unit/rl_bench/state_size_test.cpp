#include "rl_bench/state_size.hpp"

#include <gtest/gtest.h>

namespace caftan::rl_bench::state_size_test {
namespace {

TEST(StateSize, IsNumbersWithDashesBetweenThem) {
  EXPECT_EQ(*parse_state_size("10-20-10"), (std::vector<std::int64_t>{10, 20, 10}));
  EXPECT_EQ(*parse_state_size("16777216"), (std::vector<std::int64_t>{16777216}));
  EXPECT_EQ(parse_state_size("1-1-1-1-1-1-1-1")->size(), 8U);
}

TEST(StateSize, AnythingElseIsRefused) {
  for (const char* text : {"", "-", "10-", "-10", "10--20", "10x20", "0-1", "10, 20", "16777217", "4096-4097",
                           "1-1-1-1-1-1-1-1-1", "99999999999999999999", "a"}) {
    const auto sizes = parse_state_size(text);
    ASSERT_FALSE(sizes) << text;
    EXPECT_EQ(sizes.error().code(), Errc::invalid_config);
    EXPECT_NE(sizes.error().message().find("\"10-20-10\""), std::string::npos);
  }
}

}  // namespace
}  // namespace caftan::rl_bench::state_size_test
