/// What a worker shows of its live references.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/ids.hpp"

namespace caftan {

/// One reference that the owner counts.
struct ForkInfo {
  ForkId fork;
  WorkerId worker;             ///< where it is
  std::uint64_t actor_id = 0;  ///< id of the proxy that the owner's actor monitors
};

/// One live reference on this worker: a value it owns, or a fork it uses.
struct RRefInfo {
  RRefId rref;
  bool is_owner = false;
  ForkId fork;        ///< none at the owner
  std::string owner;  ///< worker's name
  std::string type;
  std::string state;  ///< at the owner: pending, ready, failed; else creating, awaiting, confirmed, failed
  base::Duration age{};
  std::uint64_t actor_id = 0;   ///< id of its owner_rref_actor or user_rref_actor on this worker
  std::vector<ForkInfo> forks;  ///< at the owner
};

}  // namespace caftan
