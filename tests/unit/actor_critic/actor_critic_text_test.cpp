#include <gtest/gtest.h>

#include "actor_critic/progress_text.hpp"

namespace caftan::actor_critic::actor_critic_text_test {
namespace {

const Standing kStanding{.frames = 204'800,
                         .max_frames = 1'000'000,
                         .evaluation = 312.54,
                         .best = 410,
                         .frames_per_s = 98'140,
                         .lag = 1.24,
                         .queue = 0.84,
                         .idle = 0.083,
                         .seconds = 2.14,
                         .updates = 100,
                         .actors = 4};

TEST(ActorCriticText, HasTheFormThatScriptsRead) {
  EXPECT_EQ(frames_line(kStanding),
            "frames 204,800 of 1,000,000  evaluation 312.5, best 410.0  98.1 k frames/s, lag 1.2, idle 8 %");
  EXPECT_EQ(
      trained_line(kStanding),
      "trained: 204,800 frames, 100 updates, 2.1 s, 98.1 k frames/s, policy lag 1.2, queue 0.8, learner idle 8 %");
  EXPECT_EQ(evaluation_line(487.26, 301, 100, 204'800, 2.14),
            "evaluation: mean 487.3 of 100 episodes, min 301, at 204,800 frames, 2.1 s");
  EXPECT_EQ(missed_text(120.52, 475), "the best evaluation's mean return is 120.5, the goal is 475");
  EXPECT_EQ(with_commas(-1'234'567), "-1,234,567");
  EXPECT_EQ(with_commas(999), "999");
}

TEST(ActorCriticText, LeavesOutEvaluationsThatAreNotThere) {
  Standing early = kStanding;
  early.evaluation.reset();
  early.best.reset();
  EXPECT_EQ(frames_line(early), "frames 204,800 of 1,000,000  98.1 k frames/s, lag 1.2, idle 8 %");
}

}  // namespace
}  // namespace caftan::actor_critic::actor_critic_text_test
