/// The backend `gloo`, where this build has it: libtorch's ProcessGroupGloo, whose members find each other over the
/// group's calls.
#pragma once

#include <memory>

#include "caftan/collectives/internal/group.hpp"

namespace caftan::collectives {

/// Makes the process group of a group whose members have all joined.
/// @param control  keeps the membership: it is left when the result ends
/// Errors: timeout, io_error (a socket), unsupported (not in this build).
Result<std::shared_ptr<Collectives>> make_gloo_group(const std::shared_ptr<Group>& group,
                                                     std::shared_ptr<Collectives> control, base::Duration timeout);

}  // namespace caftan::collectives
