/// What a DistributedOptimizer knows of the owners of its parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/optim/internal/remote_optimizer.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/rref.hpp"
#include "placement.hpp"

namespace caftan::optim {

/// One owner, and its parameters.
struct Owner : Placed {
  RRef<RemoteOptimizer> optimizer;
  StepNumber since;  ///< the last step before it became an owner
};

/// The parameters that one owner has, as they are sent to it.
struct Share {
  Peer peer;
  OptimizerSpec spec;
  std::vector<std::uint32_t> groups;   ///< for each group of the spec, its number in the user's list
  std::vector<std::uint64_t> numbers;  ///< for each parameter, its number in the user's list
  std::vector<std::string> names;      ///< of each parameter, or empty
};

/// Returns the running code's Ambient without its autograd context: what is called so is no part of any context.
Ambient outside_contexts();

}  // namespace caftan::optim
