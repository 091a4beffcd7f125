/// The sizes of a state's dimensions, as the original benchmark writes them: "10-20-10".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::rl_bench {

/// Returns the sizes.
/// Errors: invalid_config (not 1 to 8 numbers with - between them, a size of 0, or more than 16,777,216 floats).
Result<std::vector<std::int64_t>> parse_state_size(const std::string& text);

}  // namespace caftan::rl_bench
