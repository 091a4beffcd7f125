#include "rref/parked_forks.hpp"

#include <utility>

namespace caftan::actors {

bool ParkedForks::park(const rpc::ForkRequest& request, const caf::strong_actor_ptr& child) {
  const base::LockGuard lock(mutex_);
  if (!ledger_.park(request)) return false;
  parked_[request.fork] = {request, child};
  return true;
}

std::vector<ParkedForks::Parked> ParkedForks::created(RRefId rref, rpc::CreationNumber creation) {
  const base::LockGuard lock(mutex_);
  return take(ledger_.created(rref, creation));
}

std::vector<ParkedForks::Parked> ParkedForks::session_ended(const rpc::PeerSession& session) {
  std::vector<Parked> forgotten;  // released after the lock
  const base::LockGuard lock(mutex_);
  std::vector<Parked> refused = take(ledger_.session_ended(session));
  for (auto at = parked_.begin(); at != parked_.end();) {
    if (at->second.request.session == session) {
      forgotten.push_back(std::move(at->second));
      at = parked_.erase(at);
    } else {
      ++at;
    }
  }
  return refused;
}

void ParkedForks::child_gone(const ForkId& fork, const rpc::PeerSession& session) {
  Parked gone;  // released after the lock
  const base::LockGuard lock(mutex_);
  if (!ledger_.expired(fork, session)) return;
  if (auto node = parked_.extract(fork)) gone = std::move(node.mapped());
}

std::size_t ParkedForks::count() const {
  const base::LockGuard lock(mutex_);
  return ledger_.parked_count();
}

std::vector<ParkedForks::Parked> ParkedForks::take(const std::vector<rpc::ForkRequest>& requests) {
  std::vector<Parked> taken;
  taken.reserve(requests.size());
  for (const rpc::ForkRequest& request : requests) {
    if (auto node = parked_.extract(request.fork)) taken.push_back(std::move(node.mapped()));
  }
  return taken;
}

}  // namespace caftan::actors
