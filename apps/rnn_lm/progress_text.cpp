#include "progress_text.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace caftan::rnn_lm {
namespace {

std::string with_digits(const char* format, double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

}  // namespace

double perplexity(double loss) { return std::exp(loss); }

std::string step_line(const Standing& standing) {
  std::string line = "step " + std::to_string(standing.step) + " of " + std::to_string(standing.max_steps) +
                     "  train " + with_digits("%.3f", standing.train_loss);
  if (standing.valid_loss) {
    line += ", valid " + with_digits("%.3f", *standing.valid_loss) + " nats (perplexity " +
            with_digits("%.2f", perplexity(*standing.valid_loss)) + ")";
  } else {
    line += " nats";
  }
  return line + "  " + with_digits("%.1f", standing.characters_per_s / 1e3) + " k chars/s, " +
         with_digits("%.1f", standing.ms_per_step) + " ms/step, " + with_digits("%.1f", standing.bytes_per_step / 1e6) +
         " MB/step";
}

std::string trained_line(const Standing& standing) {
  const double loss = standing.valid_loss.value_or(0);
  return "trained: " + std::to_string(standing.step) + " steps, valid loss " + with_digits("%.3f", loss) +
         " nats per character (perplexity " + with_digits("%.2f", perplexity(loss)) + "), " +
         with_digits("%.1f", standing.seconds) + " s";
}

std::string resumed_line(std::int64_t step, const std::string& path, double learning_rate, double lr) {
  const std::string line = "resumed: step " + std::to_string(step) + " of " + path;
  if (learning_rate == lr) return line;
  return line + ", learning rate " + with_digits("%g", learning_rate) + " as there (optimizer.lr is not read)";
}

std::string nothing_left_line(std::int64_t step) {
  const std::string steps = std::to_string(step);
  return "nothing to train: the checkpoint stands at step " + steps + " and max_steps is " + steps +
         "; raise max_steps";
}

std::string diverged_text(std::int64_t step, const std::string& what, double value, double learning_rate) {
  return "step " + std::to_string(step) + ": the " + what + " is " + with_digits("%g", std::abs(value)) +
         ", the training has diverged; its learning rate was " + with_digits("%g", learning_rate) +
         ": start anew with a lower optimizer.lr, or resume from an earlier checkpoint";
}

std::string missed_text(double valid_loss, double goal) {
  return "valid loss " + with_digits("%.3f", valid_loss) + " nats per character, the goal is " +
         with_digits("%.3f", goal);
}

std::string curve_heading() { return "step,train_loss,valid_loss,perplexity,learning_rate\n"; }

std::string curve_row(std::int64_t step, double train_loss, double valid_loss, double learning_rate) {
  std::string row = std::to_string(step);
  for (const double number : {train_loss, valid_loss, perplexity(valid_loss), learning_rate}) {
    row += with_digits(",%.17g", number);
  }
  return row + "\n";
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
