/// The error text of a start that timed out: which members are missing, and of which members it is unknown (SE-26).
#pragma once

#include <string>
#include <vector>

#include "caftan/base/clock.hpp"

namespace caftan::net {

struct MemberAtStart {
  std::string name{};
  bool is_here = false;
  bool has_left = false;      ///< was here
  bool would_be_met = false;  ///< its address is known here, or ours there: if it had started, there would be a session
  bool is_meeting = false;  ///< is here, and has not reported to the coordinator that it has a session with all others
};

/// @param members  all, the coordinator first
/// @param has_view  whether the coordinator has sent the addresses of all members
std::string who_is_missing(const std::vector<MemberAtStart>& members, bool has_view, base::Duration start_timeout);

}  // namespace caftan::net
