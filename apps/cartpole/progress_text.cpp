#include "progress_text.hpp"

#include <algorithm>
#include <numeric>

#include "caftan/base/settings_io.hpp"

namespace caftan::cartpole {

std::string episode_line(const Standing& standing) {
  std::string line =
      "episode " + std::to_string(standing.episode) + "  running reward " + format_fixed(standing.running_reward, 1) +
      " of " + format_digits(standing.solved_at) +
      (standing.observers > 1 ? " (worst of " + std::to_string(standing.observers) + " observers)" : std::string()) +
      "  " + steps_text(standing.env_steps, standing.seconds) + ", " + rate(standing.calls, standing.seconds) +
      " calls/s";
  if (standing.call_p50_us > 0) line += ", p50 " + format_fixed(standing.call_p50_us, 0) + " us";
  return line;
}

std::string solved_line(const Standing& standing) {
  return "solved: running reward " + format_fixed(standing.running_reward, 1) + " > " +
         format_digits(standing.solved_at) + " after " + with_commas(standing.episode) + " episodes, " +
         with_commas(standing.env_steps) + " env steps, " + format_fixed(standing.seconds, 1) + " s";
}

std::string exhausted_text(const Standing& standing) {
  return "the running reward is " + format_fixed(standing.running_reward, 1) + " after " +
         with_commas(standing.episode) + " episodes (max_episodes), it had to pass " +
         format_digits(standing.solved_at);
}

std::string evaluation_line(std::span<const double> rewards) {
  const double sum = std::accumulate(rewards.begin(), rewards.end(), 0.0);
  return "greedy evaluation: " + with_commas(static_cast<std::int64_t>(rewards.size())) + " episodes, mean " +
         format_fixed(sum / static_cast<double>(rewards.size()), 1) + ", min " +
         format_digits(*std::min_element(rewards.begin(), rewards.end()));
}

}  // namespace caftan::cartpole
