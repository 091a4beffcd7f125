// The lines that scripts read.
#include "image_training/report_text.hpp"

#include <gtest/gtest.h>

namespace caftan::image_training::report_text_test {
namespace {

TEST(ReportText, HasItsForm) {
  EXPECT_EQ(accuracy_line({.right = 8571, .images = 10000}),
            "accuracy 85.7 % of 10,000 test images, in evaluation mode");
  EXPECT_EQ(accuracy_line({.right = 1, .images = 500}), "accuracy 0.2 % of 500 test images, in evaluation mode");
  EXPECT_EQ(missed_text({.right = 71, .images = 100}, 0.86), "accuracy 71.0 %, the goal is 86.0 %");
  EXPECT_EQ(resumed_line(20, "runs/latest"), "resumed: step 20 of runs/latest");
  EXPECT_EQ(nothing_left_line(20, "rounds"),
            "nothing to train: the checkpoint stands at step 20 and rounds is 20; raise rounds");
}

TEST(ReportText, ATrainingThatDivergesNamesTheLearningRate) {
  EXPECT_EQ(diverged_text(3, 1.0 / 0.0, 1000),
            "step 3: the loss is inf, the training has diverged; its learning rate was 1000: start anew with a lower "
            "optimizer.lr, or resume from an earlier checkpoint");
}

}  // namespace
}  // namespace caftan::image_training::report_text_test
