/// Reports, before anything starts, what the settings of a learner cannot do together, or what is wrong with its
/// checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "actor_critic/config.hpp"
#include "caftan/app/role_type.hpp"

namespace caftan::actor_critic {

/// The stream of the learner's first parameters.
inline constexpr const char* kParameterStream = "parameters";

/// Makes no tensors: a launcher must not have threads yet.
/// @param seed  of kParameterStream
std::vector<app::MissingRequirement> find_missing(const LearnerConfig& config, const app::RolePlace& place,
                                                  std::uint64_t seed);

}  // namespace caftan::actor_critic
