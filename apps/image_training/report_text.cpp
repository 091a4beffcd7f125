#include "image_training/report_text.hpp"

#include "caftan/base/settings_io.hpp"

namespace caftan::image_training {
namespace {

std::string percent(double share) {
  constexpr double kPercent = 100;
  return format_fixed(kPercent * share, 1) + " %";
}

}  // namespace

std::string accuracy_line(const Accuracy& accuracy) {
  std::string images = std::to_string(accuracy.images);
  for (std::size_t at = images.size(); at > 3;) images.insert(at -= 3, ",");
  return "accuracy " + percent(accuracy.share()) + " of " + images + " test images, in evaluation mode";
}

std::string missed_text(const Accuracy& accuracy, double goal) {
  return "accuracy " + percent(accuracy.share()) + ", the goal is " + percent(goal);
}

std::string resumed_line(std::int64_t step, const std::string& path) {
  return "resumed: step " + std::to_string(step) + " of " + path;
}

std::string nothing_left_line(std::int64_t step, const std::string& key) {
  const std::string text = std::to_string(step);
  return "nothing to train: the checkpoint stands at step " + text + " and " + key + " is " + text + "; raise " + key;
}

std::string diverged_text(std::int64_t step, double loss, double learning_rate) {
  return "step " + std::to_string(step) + ": the loss is " + format_digits(loss) +
         ", the training has diverged; its learning rate was " + format_digits(learning_rate) +
         ": start anew with a lower optimizer.lr, or resume from an earlier checkpoint";
}

}  // namespace caftan::image_training
