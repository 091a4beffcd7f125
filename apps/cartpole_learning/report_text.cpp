#include "cartpole_learning/report_text.hpp"

#include <cmath>

#include "caftan/base/settings_io.hpp"

namespace caftan::cartpole {

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t end = text.size(); end > first + 3;) text.insert(end -= 3, 1, ',');
  return text;
}

std::string rate(std::int64_t count, double seconds) {
  return format_fixed(seconds > 0 ? static_cast<double>(count) / seconds / 1000 : 0, 1) + " k";
}

std::string steps_text(std::int64_t env_steps, double seconds) {
  return with_commas(env_steps) + " steps, " + rate(env_steps, seconds) + " steps/s";
}

std::string diverged_text(double loss, double learning_rate) {
  return "the loss is " + format_digits(std::abs(loss)) + ", the training has diverged; its learning rate was " +
         format_digits(learning_rate) + ": start anew with a lower learning_rate";
}

std::string fingerprint_line(const std::string& fingerprint, bool deterministic) {
  return "fingerprint " + fingerprint + (deterministic ? "" : " (deterministic = false: may differ from run to run)");
}

}  // namespace caftan::cartpole
