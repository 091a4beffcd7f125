#include "batch_settings/batch_limits.hpp"

#include <algorithm>
#include <string>

namespace caftan::batch_settings {

std::size_t observers_at(const app::RolePlace& place) {
  const auto found = place.uses.find("observers");
  return found == place.uses.end() ? 0 : found->second.size();
}

BatchLimits limits_of(const BatchConfig& config, std::size_t observers) {
  const std::size_t most =
      config.max_size ? static_cast<std::size_t>(*config.max_size) : std::max<std::size_t>(observers, 1);
  return {.max_size = most, .max_wait = config.max_wait};
}

std::vector<app::MissingRequirement> find_missing(const BatchConfig& config, std::size_t observers) {
  const bool waits = config.enabled && config.max_wait > std::chrono::nanoseconds(0);
  if (!waits || observers == 0 || limits_of(config, observers).max_size <= observers) return {};
  return {{.keys = {"batch.max_size"},
           .text = "batches of " + std::to_string(*config.max_size) + " never fill, since each of " +
                   std::to_string(observers) +
                   " observers has one request at a time: every batch takes batch.max_wait; "
                   "leave max_size out",
           .kind = app::MissingRequirement::Kind::doubt}};
}

}  // namespace caftan::batch_settings
