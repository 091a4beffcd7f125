/// The command `play`: shows an episode of an agent, and the returns of several.
#pragma once

#include <string>

#include "caftan/rl/environments.hpp"

namespace caftan::play {

inline constexpr const char* kPlayUsage =
    "play RUN [--episodes N] [--seed N] [--newest] [--svg FILE] [--gif FILE] [--speed N] [--quiet]";

/// @param program  the name of the program, for the usage
/// @param known    its environments
/// Exit codes: 0; 1 (an environment failed, a file cannot be written), 2 (the command line, no checkpoint, an
/// environment that is not known or is another one than the policy's).
int run_play_command(const std::string& program, const rl::Environments& known, int argc, char** argv);

}  // namespace caftan::play
