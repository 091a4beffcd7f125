/// Where a model is cut into stages. Makes no tensors.
#pragma once

#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "models/units.hpp"
#include "pipeline/config.hpp"

namespace caftan::pipeline {

/// Returns the units of the model that a config names: "conv1", "layer1.0", ..., "fc", or "fc1", "fc2", ...
std::vector<std::string> unit_names(const MasterConfig& config);

/// Returns the units of each stage: at least two stages, each with at least one unit.
/// Errors: invalid_config (no cut; a cut that the model does not have, that is the model's begin, or that does not come
///   behind the one before it; the text has the cuts that there are).
Result<std::vector<models::UnitRange>> cut_model(const MasterConfig& config);

/// Returns "conv1..layer2.1" for people.
std::string range_name(const std::vector<std::string>& units, const models::UnitRange& range);

}  // namespace caftan::pipeline
