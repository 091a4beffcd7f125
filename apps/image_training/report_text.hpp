/// The lines that trainings of models for images report. Scripts read them: tests hold their form.
#pragma once

#include <cstdint>
#include <string>

#include "image_training/image_tensors.hpp"

namespace caftan::image_training {

/// Returns "accuracy 85.7 % of 10,000 test images, in evaluation mode".
std::string accuracy_line(const Accuracy& accuracy);

/// Returns why a training ended without success: "accuracy 71.0 %, the goal is 86.0 %".
std::string missed_text(const Accuracy& accuracy, double goal);

/// Returns "resumed: step 20 of checkpoints/step-000020".
std::string resumed_line(std::int64_t step, const std::string& path);

/// Returns "nothing to train: the checkpoint stands at step 20 and rounds is 20; raise rounds".
std::string nothing_left_line(std::int64_t step, const std::string& key);

/// Returns why a training whose loss is not finite ends, with the learning rate to lower.
std::string diverged_text(std::int64_t step, double loss, double learning_rate);

}  // namespace caftan::image_training
