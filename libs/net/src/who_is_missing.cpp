#include "caftan/net/internal/who_is_missing.hpp"

#include <algorithm>

#include "caftan/base/internal/joined.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::net {
namespace {

const char* has(const std::vector<std::string>& names) { return names.size() == 1 ? " has" : " have"; }

}  // namespace

std::string who_is_missing(const std::vector<MemberAtStart>& members, bool has_view, base::Duration start_timeout) {
  const std::string within = " within " + format_duration(start_timeout.count());
  std::vector<std::string> missing;
  std::vector<std::string> unknown;
  std::vector<std::string> left;
  std::vector<std::string> meeting;
  for (const MemberAtStart& member : members) {
    if (member.is_meeting) meeting.push_back(member.name);
    if (member.is_here) continue;
    (member.has_left ? left : member.would_be_met ? missing : unknown).push_back(member.name);
  }
  const MemberAtStart& coordinator = members.front();
  if (!unknown.empty() && !coordinator.is_here && !coordinator.has_left) {
    return coordinator.name + ", the coordinator, has not come" + within;
  }
  // Without a view some member is missing at the coordinator, too. If there is only one member of which this worker
  // does not know whether it is there, that member is missing.
  if (unknown.size() == 1 && missing.empty() && !has_view) missing.swap(unknown);

  std::string text;
  const auto say = [&text](const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
  if (!missing.empty()) say(base::joined(missing) + has(missing) + " not come" + within);
  if (missing.empty() && !unknown.empty()) say("not all have come" + within);
  if (!unknown.empty()) say("not heard of: " + base::joined(unknown));
  if (!left.empty()) say(base::joined(left) + has(left) + " come and left");
  if (text.empty() && !meeting.empty()) say(base::joined(meeting) + has(meeting) + " not met all others" + within);
  if (text.empty()) say("not all have met" + within);
  const auto here = std::ranges::count_if(members, [](const MemberAtStart& member) { return member.is_here; });
  say(std::to_string(here) + " of " + std::to_string(members.size()) + " are here");
  return text;
}

}  // namespace caftan::net
