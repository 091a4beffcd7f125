/// The lines a training reports. Scripts read them: tests hold their form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace caftan::rnn_lm {

/// Where a training stands. Losses are in nats per character.
struct Standing {
  std::int64_t step = 0;
  std::int64_t max_steps = 0;
  double train_loss = 0;  ///< of the last step
  std::optional<double> valid_loss{};
  double characters_per_s = 0;
  double ms_per_step = 0;
  double bytes_per_step = 0;  ///< bytes that the trainer sent and received
  double seconds = 0;         ///< since the first step of this run
};

/// Returns e to the loss: the number of characters among which a fair choice would be as hard.
double perplexity(double loss);

/// Returns "step 300 of 600  train 1.620, valid 1.970 nats (perplexity 7.17)  66.2 k chars/s, 31.0 ms/step, 4.1
/// MB/step".
std::string step_line(const Standing& standing);

/// Returns "trained: 600 steps, valid loss 1.877 nats per character (perplexity 6.53), 41.2 s".
std::string trained_line(const Standing& standing);

/// Returns the line about a resumed training: from which step it goes on, and the checkpoint's learning rate where the
/// file has another one.
std::string resumed_line(std::int64_t step, const std::string& path, double learning_rate, double lr);

/// Returns the line about a resumed training that has no step left to take.
std::string nothing_left_line(std::int64_t step);

/// Returns why a training ended at a step: a number of the training is not finite.
std::string diverged_text(std::int64_t step, const std::string& what, double value, double learning_rate);

/// Returns why the goal was missed.
std::string missed_text(double valid_loss, double goal);

/// Returns the lines of a text, each with "  " before it.
std::vector<std::string> indented_lines(const std::string& text);

}  // namespace caftan::rnn_lm
