/// Pieces of the lines that CartPole trainings report.
#pragma once

#include <cstdint>
#include <string>

namespace caftan::cartpole {

/// Returns a number with commas between thousands: "71,204".
std::string with_commas(std::int64_t number);

/// Returns count / seconds in thousands: "21.4 k".
std::string rate(std::int64_t count, double seconds);

/// Returns "34,120 steps, 21.4 k steps/s". @param seconds  in which the steps were taken
std::string steps_text(std::int64_t env_steps, double seconds);

/// Returns why a training whose loss is not finite ends, with the learning rate to lower.
std::string diverged_text(double loss, double learning_rate);

/// Returns "fingerprint sha256:...". For a run that is not deterministic the line also says that another run may give
/// another fingerprint.
std::string fingerprint_line(const std::string& fingerprint, bool deterministic);

}  // namespace caftan::cartpole
