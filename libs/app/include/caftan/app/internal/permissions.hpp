/// What an application file lets the members of a run do at one of its workers.
#pragma once

#include "caftan/app/internal/application.hpp"
#include "caftan/app/internal/plan.hpp"
#include "caftan/base/permissions.hpp"

namespace caftan::app {

/// Returns the permissions of all others at `worker`. Each rule is named with its line of the file.
/// Precondition: the application was loaded without errors, and the plan was made of it.
Permissions permissions_at(const Application& application, const Plan& plan, const PlannedWorker& worker);

}  // namespace caftan::app
