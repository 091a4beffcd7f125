/// The lines that the parameter server reports. Scripts read them: tests hold their form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace caftan::parameter_server {

/// Returns "staleness: 0 in 120 steps, 1 in 30, mean 0.20"; "staleness: no step was applied" for none.
/// @param histogram  element s: how many gradients were s steps behind
std::string staleness_line(const std::vector<std::uint64_t>& histogram);

/// Returns the mean of a histogram, 0 for none.
double mean_staleness(const std::vector<std::uint64_t>& histogram);

}  // namespace caftan::parameter_server
