#include "cartpole_batch/progress_text.hpp"

#include "caftan/base/settings_io.hpp"
#include "cartpole_learning/report_text.hpp"

namespace caftan::cartpole_batch {
namespace {

std::string batch_text(const Standing& standing) {
  if (standing.mean_batch_size == 0) return {};
  return ", mean batch size " + format_fixed(standing.mean_batch_size, 1);
}

}  // namespace

std::string episode_line(const Standing& standing) {
  return "episode " + std::to_string(standing.episode) + " of " + std::to_string(standing.episodes) + "  reward " +
         format_fixed(standing.mean_reward, 1) + ", running reward " + format_fixed(standing.running_reward, 1) +
         batch_text(standing) + "  " + cartpole::steps_text(standing.env_steps, standing.seconds);
}

std::string played_line(const Standing& standing) {
  return "played: " + std::to_string(standing.episode) + " episodes with " + std::to_string(standing.observers) +
         (standing.observers == 1 ? " observer" : " observers") + ", running reward " +
         format_fixed(standing.running_reward, 1) + batch_text(standing) + ", " +
         cartpole::with_commas(standing.sub_episodes) + " sub-episodes, " + cartpole::with_commas(standing.env_steps) +
         " env steps, " + format_fixed(standing.seconds, 1) + " s";
}

}  // namespace caftan::cartpole_batch
