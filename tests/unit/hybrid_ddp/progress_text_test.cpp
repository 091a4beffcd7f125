// The lines that scripts read.
#include "hybrid_ddp/progress_text.hpp"

#include <gtest/gtest.h>

namespace caftan::hybrid_ddp::progress_text_test {
namespace {

TEST(HybridText, LinesHaveTheirForm) {
  EXPECT_EQ(step_line(300, 1000, 0.8124, 1.94), "step 300 of 1000  loss 0.812  1.9 ms/step");
  const Accuracy accuracy{.right = 3, .passages = 4};
  EXPECT_EQ(accuracy_line(accuracy, 0.25), "accuracy 75.0 % of 4 passages, 3.0 times the largest class (25.0 %)");
  EXPECT_EQ(trained_line(1000, 2, 0.9121, 1.944), "trained: 1000 steps of 2 trainers, mean loss 0.912, 1.94 ms/step");
  EXPECT_EQ(equal_line(7, 0xabc), "replicas equal: 7 steps, hash 0000000000000abc");
  EXPECT_EQ(missed_text(accuracy, 0.25, 3.5),
            "accuracy 75.0 % of 4 passages, 3.0 times the largest class (25.0 %), and the goal is 3.5 times");
}

}  // namespace
}  // namespace caftan::hybrid_ddp::progress_text_test
