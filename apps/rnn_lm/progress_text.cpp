#include "progress_text.hpp"

#include <algorithm>
#include <cmath>

#include "caftan/base/settings_io.hpp"

namespace caftan::rnn_lm {

double perplexity(double loss) { return std::exp(loss); }

std::string step_line(const Standing& standing) {
  std::string line = "step " + std::to_string(standing.step) + " of " + std::to_string(standing.max_steps) +
                     "  train " + format_fixed(standing.train_loss, 3);
  if (standing.valid_loss) {
    line += ", valid " + format_fixed(*standing.valid_loss, 3) + " nats (perplexity " +
            format_fixed(perplexity(*standing.valid_loss), 2) + ")";
  } else {
    line += " nats";
  }
  return line + "  " + format_fixed(standing.characters_per_s / 1e3, 1) + " k chars/s, " +
         format_fixed(standing.ms_per_step, 1) + " ms/step, " + format_fixed(standing.bytes_per_step / 1e6, 1) +
         " MB/step";
}

std::string trained_line(const Standing& standing) {
  const double loss = standing.valid_loss.value_or(0);
  return "trained: " + std::to_string(standing.step) + " steps, valid loss " + format_fixed(loss, 3) +
         " nats per character (perplexity " + format_fixed(perplexity(loss), 2) + "), " +
         format_fixed(standing.seconds, 1) + " s";
}

std::string resumed_line(std::int64_t step, const std::string& path, double learning_rate, double lr) {
  const std::string line = "resumed: step " + std::to_string(step) + " of " + path;
  if (learning_rate == lr) return line;
  return line + ", learning rate " + format_digits(learning_rate) + " as there (optimizer.lr is not read)";
}

std::string nothing_left_line(std::int64_t step) {
  const std::string steps = std::to_string(step);
  return "nothing to train: the checkpoint stands at step " + steps + " and max_steps is " + steps +
         "; raise max_steps";
}

std::string diverged_text(std::int64_t step, const std::string& what, double value, double learning_rate) {
  return "step " + std::to_string(step) + ": the " + what + " is " + format_digits(std::abs(value)) +
         ", the training has diverged; its learning rate was " + format_digits(learning_rate) +
         ": start anew with a lower optimizer.lr, or resume from an earlier checkpoint";
}

std::string missed_text(double valid_loss, double goal) {
  return "valid loss " + format_fixed(valid_loss, 3) + " nats per character, the goal is " + format_fixed(goal, 3);
}

std::vector<std::string> indented_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back("  " + text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace caftan::rnn_lm
