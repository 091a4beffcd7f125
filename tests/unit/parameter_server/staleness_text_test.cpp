// The line that scripts read of the staleness of gradients.
#include <gtest/gtest.h>

#include "parameter_server/progress_text.hpp"

namespace caftan::parameter_server::staleness_text_test {
namespace {

TEST(StalenessText, HasItsForm) {
  EXPECT_EQ(staleness_line({120, 30}), "staleness: 0 in 120 steps, 1 in 30, mean 0.20");
  EXPECT_EQ(staleness_line({0, 0, 5}), "staleness: 2 in 5 steps, mean 2.00");
  EXPECT_EQ(staleness_line({}), "staleness: no step was applied");
  EXPECT_EQ(staleness_line({0, 0}), "staleness: no step was applied");
  EXPECT_DOUBLE_EQ(mean_staleness({1, 1, 2}), 1.25);
  EXPECT_DOUBLE_EQ(mean_staleness({}), 0);
}

}  // namespace
}  // namespace caftan::parameter_server::staleness_text_test
