#include "rref/rref_table.hpp"

#include <caf/send.hpp>

#include "rref/rref_handles.hpp"

namespace caftan::actors {

// ---- values that this worker owns

void RRefTable::add_owner(RRefId id, caf::actor actor, OwnerEvent first, std::string type, base::TimePoint born) {
  const base::LockGuard lock(mutex_);
  caf::anon_send(actor, std::move(first));
  Owner& owner = owners_[id];
  owner.actor = std::move(actor);
  owner.type = std::move(type);
  owner.born = born;
}

bool RRefTable::has_owner(RRefId id) const {
  const base::LockGuard lock(mutex_);
  return owners_.contains(id);
}

std::size_t RRefTable::owners() const {
  const base::LockGuard lock(mutex_);
  return owners_.size();
}

/// The lookup and the delivery are one step under the lock: an owner that ends leaves the table first.
bool RRefTable::send_to_owner(RRefId id, OwnerEvent event) {
  const base::LockGuard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return false;
  caf::anon_send(owner->second.actor, std::move(event));
  return true;
}

std::shared_ptr<const ValueError> RRefTable::value_error(RRefId id) {
  const base::LockGuard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return nullptr;
  if (!owner->second.error) owner->second.error = std::make_shared<ValueError>();
  return owner->second.error;
}

void RRefTable::value_known(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value) {
  const base::LockGuard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return;
  owner->second.state = value ? "ready" : "failed";
  if (value) return;
  if (!owner->second.error) owner->second.error = std::make_shared<ValueError>();
  owner->second.error->set(value.error());
}

void RRefTable::fork_counted(RRefId id, ForkInfo fork) {
  const base::LockGuard lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) owner->second.forks[fork.fork] = fork;
}

void RRefTable::fork_ended(RRefId id, ForkId fork) {
  const base::LockGuard lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) owner->second.forks.erase(fork);
}

void RRefTable::remove_owner(RRefId id) {
  caf::actor last;
  {
    const base::LockGuard lock(mutex_);
    const auto owner = owners_.find(id);
    if (owner == owners_.end()) return;
    last = std::move(owner->second.actor);
    owners_.erase(owner);
  }
  notify_if_empty();
}

// ---- forks that this worker uses

bool RRefTable::has_user(ForkId fork) const {
  const base::LockGuard lock(mutex_);
  return users_.contains(fork);
}

std::size_t RRefTable::users() const {
  const base::LockGuard lock(mutex_);
  return users_.size();
}

caf::actor RRefTable::user_actor(ForkId fork) const {
  const base::LockGuard lock(mutex_);
  const auto user = users_.find(fork);
  return user == users_.end() ? caf::actor() : user->second.actor;
}

std::vector<caf::actor> RRefTable::user_actors() const {
  const base::LockGuard lock(mutex_);
  std::vector<caf::actor> actors;
  for (const auto& [fork, user] : users_) actors.push_back(user.actor);
  return actors;
}

std::shared_ptr<UserHandle> RRefTable::handle_of(ForkId fork) const {
  const base::LockGuard lock(mutex_);
  const auto user = users_.find(fork);
  return user == users_.end() ? nullptr : user->second.handle.lock();
}

bool RRefTable::let_go(ForkId fork) {
  const base::LockGuard lock(mutex_);
  const auto user = users_.find(fork);
  if (user == users_.end()) return false;
  user->second.is_let_go = true;
  return true;
}

std::optional<RRefTable::User> RRefTable::remove_user(ForkId fork) {
  const base::LockGuard lock(mutex_);
  const auto user = users_.find(fork);
  if (user == users_.end()) return std::nullopt;
  std::optional<User> removed(std::move(user->second));
  users_.erase(user);
  return removed;
}

// ---- all

RRefTable::Actors RRefTable::clear_owners() {
  const base::LockGuard lock(mutex_);
  Actors actors;
  for (const auto& [fork, user] : users_) actors.users.push_back(user.actor);
  for (const auto& [id, owner] : owners_) actors.owners.push_back(owner.actor);
  owners_.clear();
  return actors;
}

void RRefTable::when_empty(std::function<void()> done) {
  {
    const base::LockGuard lock(mutex_);
    empty_ = std::move(done);
  }
  notify_if_empty();
}

void RRefTable::notify_if_empty() {
  // Called under the lock, so that a waiter that gives up knows that no notification is under way.
  const base::LockGuard lock(mutex_);
  if (empty_ && owners_.empty() && users_.empty()) std::exchange(empty_, nullptr)();
}

std::vector<RRefInfo> RRefTable::list(const std::string& self, base::TimePoint now) const {
  std::vector<RRefInfo> infos;
  // Destroyed after the lock was released: the last handle of a fork takes the same lock when it ends.
  std::vector<std::shared_ptr<UserHandle>> keep;
  const base::LockGuard lock(mutex_);
  for (const auto& [id, owner] : owners_) {
    RRefInfo info{id, true, {}, self, owner.type, owner.state, now - owner.born, owner.actor->id(), {}};
    for (const auto& [fork, fork_info] : owner.forks) info.forks.push_back(fork_info);
    infos.push_back(std::move(info));
  }
  for (const auto& [fork, user] : users_) {
    const auto handle = keep.emplace_back(user.handle.lock());
    std::string state = "released";  // the handle is gone, but a child has not been accepted yet
    if (handle) {
      const char* const unanswered = user.is_creators ? "creating" : "awaiting";
      state = handle->failed() ? "failed" : handle->confirmed_by_owner() ? "confirmed" : unanswered;
    }
    infos.push_back({user.rref,
                     false,
                     fork,
                     handle ? handle->owner().name() : std::string(),
                     handle ? std::string(handle->type().name) : std::string(),
                     std::move(state),
                     now - user.born,
                     user.actor ? user.actor->id() : 0,
                     {}});
  }
  return infos;
}

}  // namespace caftan::actors
