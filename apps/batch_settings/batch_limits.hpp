/// What follows from the keys batch.* and from the number of observers.
#pragma once

#include <cstddef>
#include <vector>

#include "batch_settings/batch_config.hpp"
#include "caftan/app/role_type.hpp"
#include "caftan/rpc/batch.hpp"

namespace caftan::batch_settings {

/// Returns the limits of the role's batched method while so many observers ask: no batch waits for more requests than
/// these have, one each.
BatchLimits limits_of(const BatchConfig& config, std::size_t observers);

/// Finds a max_size above the number of observers, which is not the one used: a note.
std::vector<app::MissingRequirement> find_missing(const BatchConfig& config, std::size_t observers);

}  // namespace caftan::batch_settings
