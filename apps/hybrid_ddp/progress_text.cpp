#include "hybrid_ddp/progress_text.hpp"

#include <array>
#include <cstdio>

#include "caftan/base/settings_io.hpp"

namespace caftan::hybrid_ddp {
namespace {

std::string percent(double share) { return format_fixed(100 * share, 1) + " %"; }

}  // namespace

std::string step_line(std::int64_t step, std::int64_t total, double loss, double ms) {
  return "step " + std::to_string(step) + " of " + std::to_string(total) + "  loss " + format_fixed(loss, 3) + "  " +
         format_fixed(ms, 1) + " ms/step";
}

std::string accuracy_line(const Accuracy& accuracy, double majority) {
  return "accuracy " + percent(accuracy.share()) + " of " + std::to_string(accuracy.passages) + " passages, " +
         format_fixed(accuracy.share() / majority, 1) + " times the largest class (" + percent(majority) + ")";
}

std::string trained_line(std::int64_t steps, std::size_t trainers, double mean_loss, double ms) {
  return "trained: " + std::to_string(steps) + " steps of " + std::to_string(trainers) + " trainers, mean loss " +
         format_fixed(mean_loss, 3) + ", " + format_fixed(ms, 2) + " ms/step";
}

std::string equal_line(std::int64_t steps, std::uint64_t hash) {
  std::array<char, 17> text{};
  (void)std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return "replicas equal: " + std::to_string(steps) + " steps, hash " + text.data();
}

std::string diverged_text(std::int64_t step, double loss, double lr) {
  return "step " + std::to_string(step) + ": the loss is " + format_number(loss) + "; its learning rate was " +
         format_number(lr) + ": start anew with a lower optimizer.lr";
}

std::string missed_text(const Accuracy& accuracy, double majority, double goal) {
  return accuracy_line(accuracy, majority) + ", and the goal is " + format_number(goal) + " times";
}

}  // namespace caftan::hybrid_ddp
