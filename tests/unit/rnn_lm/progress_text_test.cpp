#include "rnn_lm/progress_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace caftan::rnn_lm::progress_text_test {
namespace {

using ::testing::ElementsAre;

TEST(ProgressText, HasTheFormThatScriptsRead) {
  Standing standing{.step = 300,
                    .max_steps = 600,
                    .train_loss = 1.62,
                    .valid_loss = 1.97,
                    .characters_per_s = 66230,
                    .ms_per_step = 31,
                    .bytes_per_step = 4.1e6,
                    .seconds = 41.23};
  EXPECT_EQ(
      step_line(standing),
      "step 300 of 600  train 1.620, valid 1.970 nats (perplexity 7.17)  66.2 k chars/s, 31.0 ms/step, 4.1 MB/step");
  EXPECT_EQ(trained_line(standing),
            "trained: 300 steps, valid loss 1.970 nats per character (perplexity 7.17), 41.2 s");
  standing.valid_loss.reset();
  EXPECT_EQ(step_line(standing), "step 300 of 600  train 1.620 nats  66.2 k chars/s, 31.0 ms/step, 4.1 MB/step");
  EXPECT_EQ(missed_text(1.97, 1.9), "valid loss 1.970 nats per character, the goal is 1.900");
}

TEST(ProgressText, OfAResumedTrainingSaysWhereItGoesOnAndWhatItDoesNotRead) {
  EXPECT_EQ(resumed_line(60, "/runs/a", 2e-3, 2e-3), "resumed: step 60 of /runs/a");
  EXPECT_EQ(resumed_line(60, "/runs/a", 2e-3, 5e-3),
            "resumed: step 60 of /runs/a, learning rate 0.002 as there (optimizer.lr is not read)");
  EXPECT_EQ(nothing_left_line(60),
            "nothing to train: the checkpoint stands at step 60 and max_steps is 60; raise max_steps");
}

TEST(ProgressText, ADivergedTrainingNamesTheKeyToChange) {
  EXPECT_EQ(diverged_text(2, "loss", -std::numeric_limits<double>::quiet_NaN(), 1e308),
            "step 2: the loss is nan, the training has diverged; its learning rate was 1e+308: start anew with a lower "
            "optimizer.lr, or resume from an earlier checkpoint");
}

TEST(ProgressText, LinesOfASampleAreIndented) {
  EXPECT_THAT(indented_lines("a\n\nb"), ElementsAre("  a", "  ", "  b"));
  EXPECT_THAT(indented_lines(""), ElementsAre("  "));
}

}  // namespace
}  // namespace caftan::rnn_lm::progress_text_test
