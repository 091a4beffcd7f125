/// What the `requirements` of a role type ask of a RolePlace: the roles that it uses, and its seeds.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/app/seeds.hpp"

namespace caftan::app {

/// Returns how many replicas the role uses under this name: 0 where the file leaves the use out.
inline std::size_t count_used(const RolePlace& place, const std::string& use) {
  const auto found = place.uses.find(use);
  return found == place.uses.end() ? 0 : found->second.size();
}

/// Returns the config of each replica that the role uses under this name, in the order of the file. The pointers are
/// valid as long as those of the place.
/// @tparam C  the Config of the used role types
template <class C>
std::vector<const C*> used_configs(const RolePlace& place, const std::string& use) {
  std::vector<const C*> configs;
  const auto found = place.uses.find(use);
  if (found == place.uses.end()) return configs;
  for (const std::any* const config : found->second) configs.push_back(std::any_cast<C>(config));
  return configs;
}

/// Returns what RoleContext::seed returns to the first replica of the role.
inline std::uint64_t stream_seed(const RolePlace& place, std::string_view stream) {
  constexpr std::uint32_t kReplica = 0;
  return stream_seed(place.root_seed, place.role, kReplica, stream);
}

}  // namespace caftan::app
