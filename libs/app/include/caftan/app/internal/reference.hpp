/// The reference page of the application file, docs/configuration.md, made from the declarations that also parse it.
#pragma once

#include <string>

#include "caftan/app/role_type.hpp"

namespace caftan::app {

/// Returns the whole page: the tables of every file, then the config and uses of each role type.
std::string reference_page(const RoleTypes& types);

}  // namespace caftan::app
