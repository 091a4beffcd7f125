/// Where two runs of a simulation part: the first border with another hash, and the first event that only one of them
/// has or that differs. Reads borders.csv and events-INDEX.jsonl, which `[roles.clock.config.log]` asks for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::sim_commands {

/// What a comparison found.
struct Difference {
  bool is_equal = true;
  std::vector<std::string> lines{};  ///< for people
};

/// Compares two runs, whose numbers of partitions may differ. Reads the files once, a moment of virtual time at a time.
/// Errors: io_error (neither file in a run), malformed_payload (a line that no run writes).
Result<Difference> compare_runs(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace caftan::sim_commands
