/// The lines a training reports. Scripts read them: tests hold their form.
#pragma once

#include <cstdint>
#include <string>

#include "hybrid_ddp/messages.hpp"

namespace caftan::hybrid_ddp {

/// Returns "step 300 of 1000  loss 0.812  1.9 ms/step".
std::string step_line(std::int64_t step, std::int64_t total, double loss, double ms);

/// Returns "accuracy 71.3 % of 612 passages, 4.7 times the largest class (15.1 %)".
std::string accuracy_line(const Accuracy& accuracy, double majority);

/// Returns "trained: 1000 steps of 2 trainers, mean loss 0.912, 1.9 ms/step".
std::string trained_line(std::int64_t steps, std::size_t trainers, double mean_loss, double ms);

/// Returns "replicas equal: 1000 steps, hash 0123456789abcdef".
std::string equal_line(std::int64_t steps, std::uint64_t hash);

/// Returns why a training ended at a step: its loss is not finite.
std::string diverged_text(std::int64_t step, double loss, double lr);

/// Returns why the goal was missed.
std::string missed_text(const Accuracy& accuracy, double majority, double goal);

}  // namespace caftan::hybrid_ddp
