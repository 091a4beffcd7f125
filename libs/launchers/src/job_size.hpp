/// How large the processes of a job are.
#pragma once

#include <chrono>
#include <cstdint>

#include "caftan/app/internal/plan.hpp"
#include "caftan/base/clock.hpp"

namespace caftan::launchers {

/// Returns the most torch threads that the workers of one host have together.
std::int64_t cores_of_a_host(const app::Application& application, const app::Plan& plan);

/// Returns the longest time from the start of a run to its end, for a file with run.wall.
base::Duration longest_run(const app::RunSettings& run);

}  // namespace caftan::launchers
