#include "actor_critic/progress_text.hpp"

#include "caftan/base/settings_io.hpp"

namespace caftan::actor_critic {
namespace {

std::string rate(double per_s) { return format_fixed(per_s / 1e3, 1) + " k frames/s"; }
std::string percent(double share) { return format_fixed(100 * share, 0) + " %"; }

}  // namespace

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string frames_line(const Standing& standing) {
  std::string line = "frames " + with_commas(standing.frames) + " of " + with_commas(standing.max_frames) + "  ";
  if (standing.evaluation) line += "evaluation " + format_fixed(*standing.evaluation, 1);
  if (standing.best) line += ", best " + format_fixed(*standing.best, 1);
  if (standing.evaluation) line += "  ";
  return line + rate(standing.frames_per_s) + ", lag " + format_fixed(standing.lag, 1) + ", idle " +
         percent(standing.idle);
}

std::string evaluation_line(double mean, double least, std::size_t episodes, std::int64_t frames, double seconds) {
  return "evaluation: mean " + format_fixed(mean, 1) + " of " + std::to_string(episodes) + " episodes, min " +
         format_digits(least) + ", at " + with_commas(frames) + " frames, " + format_fixed(seconds, 1) + " s";
}

std::string trained_line(const Standing& standing) {
  return "trained: " + with_commas(standing.frames) + " frames, " + with_commas(standing.updates) + " updates, " +
         format_fixed(standing.seconds, 1) + " s, " + rate(standing.frames_per_s) + ", policy lag " +
         format_fixed(standing.lag, 1) + ", queue " + format_fixed(standing.queue, 1) + ", learner idle " +
         percent(standing.idle);
}

std::string resumed_line(std::int64_t frames, const std::string& path) {
  return "resumed: frame " + std::to_string(frames) + " of " + path;
}

std::string missed_text(double best, double goal) {
  return "the best evaluation's mean return is " + format_fixed(best, 1) + ", the goal is " + format_digits(goal);
}

}  // namespace caftan::actor_critic
