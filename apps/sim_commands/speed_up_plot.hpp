/// Draws how much quicker a simulation is with more partitions: from the table of a sweep over their number.
#pragma once

#include <filesystem>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::sim_commands {

/// Returns whether the folder is that of a sweep.
bool is_sweep(const std::filesystem::path& folder);

/// Returns the text of an SVG file: the speed-up of each number of replicas against the least one, with a band of the
/// interval of their times, one line for each combination of the other keys, and the line of as many times as quick.
/// @param sweep  a folder with sweep.csv, of a sweep such as `caftan sweep FILE roles.partition.replicas=1,2,4`
/// Errors: io_error (no sweep.csv), bad_arguments (the sweep varies no replicas, or those of several roles; the runs
/// have
///   no clock's `seconds`; nothing to draw), malformed_payload (a line that no sweep writes).
Result<std::string> draw_speed_up(const std::filesystem::path& sweep);

}  // namespace caftan::sim_commands
