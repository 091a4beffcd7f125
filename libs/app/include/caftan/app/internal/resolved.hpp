/// The resolved file: an application with every key and its value, as it is stored with a run.
#pragma once

#include <string>

#include "caftan/app/internal/application.hpp"
#include "caftan/app/role_type.hpp"

namespace caftan::app {

/// Returns TOML text that loads as the same application from any folder: paths of the file become absolute. Notes of
/// role types are comments.
/// Precondition: the application was loaded with `types` without errors.
std::string resolved_text(const Application& application, const RoleTypes& types);

}  // namespace caftan::app
