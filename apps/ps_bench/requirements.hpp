/// Reports, before anything starts, what the settings of the benchmark and the numbers of its servers and trainers
/// cannot do together. Makes no tensors: a launcher must not have threads yet.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "ps_bench/config.hpp"

namespace caftan::ps_bench {

/// @param servers, trainers  how many there are, >= 1
std::vector<app::MissingRequirement> find_missing(const MasterConfig& config, std::uint32_t servers,
                                                  std::uint32_t trainers);

}  // namespace caftan::ps_bench
