#include "cartpole_batch/progress_text.hpp"

#include <gtest/gtest.h>

namespace caftan::cartpole_batch::progress_text_test {
namespace {

const Standing kStanding{.episode = 3,
                         .episodes = 10,
                         .mean_reward = 24.12,
                         .running_reward = 20.98,
                         .env_steps = 15000,
                         .sub_episodes = 1204,
                         .seconds = 0.5,
                         .mean_batch_size = 9.81,
                         .observers = 10};

TEST(BatchText, AnEpisodeHasItsRewardsAndTheMeanBatchSize) {
  EXPECT_EQ(episode_line(kStanding),
            "episode 3 of 10  reward 24.1, running reward 21.0, mean batch size 9.8  15,000 steps, 30.0 k steps/s");
  Standing alone = kStanding;
  alone.mean_batch_size = 0;
  EXPECT_EQ(episode_line(alone), "episode 3 of 10  reward 24.1, running reward 21.0  15,000 steps, 30.0 k steps/s");
}

TEST(BatchText, TheEndSaysWhatWasPlayed) {
  EXPECT_EQ(played_line(kStanding),
            "played: 3 episodes with 10 observers, running reward 21.0, mean batch size 9.8, 1,204 sub-episodes, "
            "15,000 env steps, 0.5 s");
}

}  // namespace
}  // namespace caftan::cartpole_batch::progress_text_test
