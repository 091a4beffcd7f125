#include "batch_settings/batch_limits.hpp"

#include <algorithm>
#include <string>

namespace caftan::batch_settings {

BatchLimits limits_of(const BatchConfig& config, std::size_t observers) {
  // No batch waits for more requests than there are observers, each of which has one at a time.
  const std::size_t all = std::max<std::size_t>(observers, 1);
  return {.max_size = config.max_size ? std::min(static_cast<std::size_t>(*config.max_size), all) : all,
          .max_wait = config.max_wait};
}

std::vector<app::MissingRequirement> find_missing(const BatchConfig& config, std::size_t observers) {
  if (!config.enabled || !config.max_size || observers == 0) return {};
  if (static_cast<std::size_t>(*config.max_size) <= observers) return {};
  return {
      {.keys = {"batch.max_size"},
       .text = "a batch has " + std::to_string(observers) + " requests at most, since each observer has one at a time",
       .kind = app::MissingRequirement::Kind::note}};
}

}  // namespace caftan::batch_settings
