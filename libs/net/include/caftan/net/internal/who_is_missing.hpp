/// The error text of a start that timed out: which members are missing, and of which members it is unknown (SE-26).
#pragma once

#include <string>
#include <vector>

#include "caftan/base/clock.hpp"

namespace caftan::net {

struct MemberAtStart {
  std::string name{};
  bool is_here = false;
  bool has_left = false;  ///< was here
  /// This worker knows the member's address, or the member knows this worker's: a member that had started would have a
  /// session here.
  bool would_be_met = false;
  /// The member is here, and has not reported to the coordinator that it has a session with every other.
  bool is_meeting = false;
};

/// @param members  all, the coordinator first
/// @param has_view  whether the coordinator has sent the addresses of all members
std::string who_is_missing(const std::vector<MemberAtStart>& members, bool has_view, base::Duration start_timeout);

}  // namespace caftan::net
