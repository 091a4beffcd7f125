/// Draws the series of a simulation's run: one chart for each name, one line for each process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::sim_commands {

/// How many processes a chart shows at most: the first ones.
inline constexpr std::size_t kMostLines = 12;

/// Returns the text of an SVG file. @param run  a folder with series.csv
/// Errors: io_error (no series.csv), malformed_payload (a line that no run writes), bad_arguments (nothing to draw).
Result<std::string> draw_series(const std::filesystem::path& run);

}  // namespace caftan::sim_commands
