/// The checkpoints of a training in their folder, each named after its step: `step-000600`. Start with
/// `find_checkpoints`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace caftan::wire {

/// Returns the name of the checkpoint of a step: "step-000600", with more digits from a million on.
/// @param step  0 or more
std::string checkpoint_name(std::int64_t step);

/// Returns the paths in a folder that are named after a step, the one of the highest step last; none if the folder
/// cannot be read.
/// @param is_checkpoint  returns whether a path with such a name is a whole checkpoint
std::vector<std::filesystem::path> find_checkpoints(
    const std::filesystem::path& folder, const std::function<bool(const std::filesystem::path&)>& is_checkpoint);

}  // namespace caftan::wire
