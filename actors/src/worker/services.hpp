/// The services of a worker that no other part of it knows by name. A new one is a folder of `actors/src` and a line in
/// services.cpp.
#pragma once

#include <memory>
#include <vector>

#include "service/service.hpp"

namespace caftan::actors {

/// Makes these services, in the order in which they register; they end in the opposite order.
std::vector<std::unique_ptr<Service>> make_services();

}  // namespace caftan::actors
