/// `Peers`: the members of the job by name and number, and all sessions of this worker, until they have ended.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/net/internal/traffic.hpp"
#include "caftan/rpc/internal/fork_table.hpp"
#include "caftan/rpc/internal/permission_table.hpp"
#include "worker/peer_state.hpp"

namespace caftan::actors {

/// Returns the first session with that life that `may_use` accepts, null if there is none. Looks at the sessions with
/// that life alone: a job of n workers ends with n lives.
template <class S, class MayUse>
std::shared_ptr<S> first_session_with(const std::map<rpc::PeerSession, std::shared_ptr<S>>& sessions,
                                      const WorkerLife& peer, const MayUse& may_use) {
  for (auto at = sessions.lower_bound({peer, 0}); at != sessions.end() && at->first.peer == peer; ++at) {
    if (may_use(*at->second)) return at->second;
  }
  return nullptr;
}

/// Threads: any, all methods.
class Peers {
 public:
  Peers(WorkerId self, const std::vector<WorkerAddress>& members);

  // ---- members: constant

  /// Errors: unknown_worker (with the names there are).
  Result<Peer> find(std::string_view name) const;
  Result<Peer> find(WorkerId id) const;
  bool knows(const rpc::PeerRecord& peer) const noexcept {
    return peer.id().value < members_.size() && members_[peer.id().value].get() == &peer;
  }
  /// Precondition: a member of this job.
  PeerState& at(WorkerId id) const noexcept { return *members_[id.value]; }
  std::size_t size() const noexcept { return members_.size(); }
  /// Returns the names of all members by id.
  std::vector<std::string> names() const;
  /// Works out what members may do here, by the rules of the registry. Precondition: it has some, and all that `own`
  /// are about is registered. @param own, @param log  as PermissionTable::Setup
  const rpc::PermissionTable& permit(const Registry& registry, std::vector<const rpc::FunctionEntry*> own,
                                     std::function<void(const std::string&)> log);

  // ---- sessions

  /// Errors: duplicate_worker (there is such a session: requests, references and read bytes belong to one connection).
  Result<void> check_new(const rpc::PeerSession& session) const;
  /// Keeps the session until `remove`. Precondition: check_new.
  void add(const std::shared_ptr<transport::Session>& session);
  /// Gives calls another session with the same life in the place of `ended`, if there is one.
  void replace(const transport::Session& ended);
  /// Removes the session. The owner of this Peers object may destroy it as soon as the last session has been removed.
  void remove(const transport::Session& ended);

  /// Returns the session that calls to that life use, null if there is none.
  std::shared_ptr<transport::Session> session_with(const WorkerLife& peer) const;
  /// Returns exactly that session, null if it was removed.
  std::shared_ptr<transport::Session> session_at(const rpc::PeerSession& session) const;
  std::vector<std::shared_ptr<transport::Session>> sessions() const;
  std::size_t session_count() const;
  /// Waits until all sessions have been removed; returns whether that was so in time. One thread at a time waits.
  bool wait_until_none(base::Executor& executor, base::TimePoint until);
  /// Lets go of the sessions that calls use.
  void forget_sessions();

  /// Adds up the frames, bytes and requests of the present sessions.
  void count(WorkerCounters& sum) const;
  /// Returns what all sessions have sent, also those that have ended.
  net::Traffic traffic() const;

 private:
  std::shared_ptr<transport::Session> other_session_with(const transport::Session& ended) const;

  const WorkerId self_;
  std::vector<std::shared_ptr<PeerState>> members_;  // by id
  std::unordered_map<std::string, WorkerId> ids_;
  std::optional<rpc::PermissionTable> permissions_;  // none: they may do everything

  mutable base::Mutex mutex_;
  std::map<rpc::PeerSession, std::shared_ptr<transport::Session>> sessions_ CAFTAN_GUARDED_BY(mutex_);
  net::Traffic ended_traffic_ CAFTAN_GUARDED_BY(mutex_);  // what the sessions that were removed have sent
  base::WaitPoint* waiter_ CAFTAN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace caftan::actors
