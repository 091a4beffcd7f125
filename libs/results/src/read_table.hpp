#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::results {

/// Takes one value: WORKER.METRIC, x and y.
using TakeValue = std::function<Result<void>(const std::string& name, double x, double y)>;

/// Reads each row of a curve.csv. Errors: those of `take`; io_error, malformed_payload (names file and line).
Result<void> read_steps(const std::filesystem::path& file, const TakeValue& take);
/// Reads each row of a metrics.csv: time and mean. Errors: as `read_steps`.
Result<void> read_times(const std::filesystem::path& file, const TakeValue& take);

}  // namespace caftan::results
