#include "caftan/rpc/internal/creation_ledger.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace caftan::rpc {

std::vector<ForkRequest> CreationLedger::created(RRefId rref, CreationNumber creation) {
  CreationNumber& highest = highest_[rref.incarnation.value];
  highest = std::max(highest, creation);
  auto waiting = parked_.extract(rref);
  return waiting ? std::move(waiting.mapped()) : std::vector<ForkRequest>{};
}

bool CreationLedger::park(const ForkRequest& request) {
  if (is_over(request.rref, request.creation)) return false;
  parked_[request.rref].push_back(request);
  return true;
}

std::vector<ForkRequest> CreationLedger::session_ended(const PeerSession& session) {
  // Nothing more can arrive of this session: its creations that were not read never will be.
  const CreationNumber last{session.connection, std::numeric_limits<std::uint64_t>::max()};
  CreationNumber& highest = highest_[session.peer.incarnation.value];
  highest = std::max(highest, last);
  std::vector<ForkRequest> refused;
  for (auto at = parked_.begin(); at != parked_.end();) {
    auto& requests = at->second;
    std::erase_if(requests, [&](const ForkRequest& request) { return request.session == session; });
    std::erase_if(requests, [&](const ForkRequest& request) {
      const bool over = is_over(request.rref, request.creation);
      if (over) refused.push_back(request);
      return over;
    });
    at = requests.empty() ? parked_.erase(at) : std::next(at);
  }
  return refused;
}

std::optional<ForkRequest> CreationLedger::expired(ForkId fork, const PeerSession& session) {
  for (auto at = parked_.begin(); at != parked_.end(); ++at) {
    auto& requests = at->second;
    const auto found = std::find_if(requests.begin(), requests.end(), [&](const ForkRequest& request) {
      return request.fork == fork && request.session == session;
    });
    if (found == requests.end()) continue;
    ForkRequest request = *found;
    requests.erase(found);
    if (requests.empty()) parked_.erase(at);
    return request;
  }
  return std::nullopt;
}

std::size_t CreationLedger::parked_count() const noexcept {
  std::size_t count = 0;
  for (const auto& [rref, requests] : parked_) count += requests.size();
  return count;
}

bool CreationLedger::is_over(const RRefId& rref, CreationNumber creation) const {
  // A value that the owner itself made was in the table before its id left the worker: it has ended.
  if (creation == CreationNumber{}) return true;
  const auto at = highest_.find(rref.incarnation.value);
  return at != highest_.end() && creation <= at->second;
}

}  // namespace caftan::rpc
