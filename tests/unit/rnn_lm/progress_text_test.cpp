#include "rnn_lm/progress_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace caftan::rnn_lm {
namespace {

using testing::ElementsAre;

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

TEST(ProgressText, RowsOfTheCurveReadBackBitForBit) {
  const double loss = 1.0 / 3;
  const std::string row = curve_row(7, loss, loss * 2, 2e-3);
  const std::size_t at = row.find(',') + 1;
  EXPECT_EQ(row.substr(0, at), "7,");
  EXPECT_EQ(std::strtod(row.c_str() + at, nullptr), loss);
  EXPECT_EQ(std::ranges::count(row, ','), std::ranges::count(curve_heading(), ','));
}

TEST(ProgressText, LinesOfASampleAreIndented) {
  EXPECT_THAT(indented_lines("a\n\nb"), ElementsAre("  a", "  ", "  b"));
  EXPECT_THAT(indented_lines(""), ElementsAre("  "));
}

}  // namespace
}  // namespace caftan::rnn_lm
