/// The checkpoint that a training of CartPole leaves: its policy, which `caftan play` shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "caftan/base/result.hpp"
#include "cartpole_learning/policy.hpp"

namespace caftan::cartpole {

/// Writes FOLDER/checkpoints/step-NNNNNN. @param environment  in which it was learned
/// Errors: io_error, limit_exceeded (no memory).
Result<std::filesystem::path> write_agent_checkpoint(const std::filesystem::path& folder, const Policy& policy,
                                                     const std::string& environment, std::int64_t episode);

}  // namespace caftan::cartpole
