#include "cartpole/progress_text.hpp"

#include <gtest/gtest.h>

#include <array>

namespace caftan::cartpole::progress_text_test {
namespace {

Standing make_standing() {
  return {.episode = 190,
          .running_reward = 300.24,
          .solved_at = 475,
          .env_steps = 34120,
          .calls = 68240,
          .seconds = 1.6,
          .call_p50_us = 19.2};
}

TEST(WithCommas, PutsOneBeforeEachThreeDigits) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(71204), "71,204");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(with_commas(-1234), "-1,234");
}

TEST(ProgressText, EpisodeLineNamesRewardStepsAndRates) {
  EXPECT_EQ(episode_line(make_standing()),
            "episode 190  running reward 300.2 of 475  34,120 steps, 21.3 k steps/s, 42.6 k calls/s, p50 19 us");
}

TEST(ProgressText, EpisodeLineLeavesOutWhatWasNotMeasured) {
  Standing standing = make_standing();
  standing.call_p50_us = 0;
  standing.seconds = 0;
  EXPECT_EQ(episode_line(standing),
            "episode 190  running reward 300.2 of 475  34,120 steps, 0.0 k steps/s, 0.0 k calls/s");
}

TEST(ProgressText, U12_EpisodeLineOfSeveralObserversSaysWhoseRewardCounts) {
  Standing standing = make_standing();
  standing.observers = 4;
  EXPECT_EQ(episode_line(standing),
            "episode 190  running reward 300.2 of 475 (worst of 4 observers)  34,120 steps, 21.3 k steps/s, "
            "42.6 k calls/s, p50 19 us");
}

TEST(ProgressText, SolvedLineIsTheOneScriptsLookFor) {
  const Standing standing = {.episode = 287,
                             .running_reward = 475.3,
                             .solved_at = 475,
                             .env_steps = 71204,
                             .calls = 0,
                             .seconds = 3.94,
                             .call_p50_us = 0};
  EXPECT_EQ(solved_line(standing), "solved: running reward 475.3 > 475 after 287 episodes, 71,204 env steps, 3.9 s");
}

TEST(ProgressText, AFailureNeverSaysSolved) {
  EXPECT_EQ(exhausted_text(make_standing()).find("solved"), std::string::npos);
  EXPECT_EQ(episode_line(make_standing()).find("solved"), std::string::npos);
}

TEST(ProgressText, EvaluationLineGivesMeanAndWorst) {
  EXPECT_EQ(evaluation_line(std::array{500.0, 500.0}), "greedy evaluation: 2 episodes, mean 500.0, min 500");
  EXPECT_EQ(evaluation_line(std::array{500.0, 401.0}), "greedy evaluation: 2 episodes, mean 450.5, min 401");
}

TEST(ProgressText, FingerprintSaysWhetherItIsPromisedToRepeat) {
  EXPECT_EQ(fingerprint_line("sha256:ab", true), "fingerprint sha256:ab");
  EXPECT_EQ(fingerprint_line("sha256:ab", false),
            "fingerprint sha256:ab (deterministic = false: may differ from run to run)");
}

}  // namespace
}  // namespace caftan::cartpole::progress_text_test
