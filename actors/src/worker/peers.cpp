#include "worker/peers.hpp"

#include <utility>

#include "service/member_ports.hpp"

namespace caftan::actors {

using transport::Session;

Peers::Peers(WorkerId self, const std::vector<WorkerAddress>& members) : self_(self) {
  for (const WorkerAddress& member : members) {
    const WorkerId id{static_cast<std::uint32_t>(members_.size())};
    members_.push_back(std::make_shared<PeerState>(id, member.name));
    ids_[member.name] = id;
  }
}

Result<Peer> Peers::find(std::string_view name) const {
  const auto found = ids_.find(std::string(name));
  if (found != ids_.end()) return Peer(members_[found->second.value]);
  std::string known;
  for (const auto& member : members_) known += (known.empty() ? "" : ", ") + member->name();
  return Error(Errc::unknown_worker, "no worker '" + std::string(name) + "' in this job; there are: " + known);
}

Result<Peer> Peers::find(WorkerId id) const {
  if (id.value < members_.size()) return Peer(members_[id.value]);
  return Error(Errc::unknown_worker,
               "no worker number " + std::to_string(id.value) + " in this job of " + std::to_string(members_.size()));
}

std::vector<std::string> Peers::names() const {
  std::vector<std::string> names;
  for (const auto& member : members_) names.push_back(member->name());
  return names;
}

const rpc::PermissionTable& Peers::permit(const Registry& registry, std::vector<const rpc::FunctionEntry*> own,
                                          std::function<void(const std::string&)> log) {
  return permissions_.emplace(
      *registry.permissions(), registry,
      rpc::PermissionTable::Setup{.self = self_, .members = names(), .entries = std::move(own), .log = std::move(log)});
}

Result<void> Peers::check_new(const rpc::PeerSession& session) const {
  const base::LockGuard lock(mutex_);
  if (!sessions_.contains(session)) return {};
  return Error(Errc::duplicate_worker, "connection " + std::to_string(session.connection) + " of this life of " +
                                           at(session.peer.id).name() + " is open already");
}

void Peers::add(const std::shared_ptr<Session>& session) {
  const base::LockGuard lock(mutex_);
  sessions_[peer_session(*session)] = session;
}

void Peers::replace(const Session& ended) {
  at(ended.peer().life.id).replace_session(ended, other_session_with(ended));
}

void Peers::remove(const Session& ended) {
  const net::Traffic sent = ended.writer().traffic();
  const base::LockGuard lock(mutex_);
  ended_traffic_ += sent;
  sessions_.erase(peer_session(ended));
  if (sessions_.empty() && waiter_) waiter_->notify();
}

/// Returns another session with the same life that calls can use, null without one.
std::shared_ptr<Session> Peers::other_session_with(const Session& ended) const {
  const WorkerLife& peer = ended.peer().life;
  if (peer.id == self_) return nullptr;
  const base::LockGuard lock(mutex_);
  return first_session_with(sessions_, peer, [](const Session& session) { return !session.ended(); });
}

std::shared_ptr<Session> Peers::session_with(const WorkerLife& peer) const {
  if (peer.id.value >= members_.size()) return nullptr;
  auto session = at(peer.id).session();
  return session && session->peer().life == peer ? session : nullptr;
}

std::shared_ptr<Session> Peers::session_at(const rpc::PeerSession& session) const {
  const base::LockGuard lock(mutex_);
  const auto found = sessions_.find(session);
  return found != sessions_.end() ? found->second : nullptr;
}

std::vector<std::shared_ptr<Session>> Peers::sessions() const {
  std::vector<std::shared_ptr<Session>> sessions;
  const base::LockGuard lock(mutex_);
  for (const auto& [key, session] : sessions_) sessions.push_back(session);
  return sessions;
}

std::size_t Peers::session_count() const {
  const base::LockGuard lock(mutex_);
  return sessions_.size();
}

bool Peers::wait_until_none(base::Executor& executor, base::TimePoint until) {
  return executor.with_wait([&](base::Executor::Wait& wait) {
    {
      const base::LockGuard lock(mutex_);
      if (sessions_.empty()) return true;
      waiter_ = &wait.point();
    }
    (void)wait.wait(until, nullptr);
    const base::LockGuard lock(mutex_);
    waiter_ = nullptr;
    return sessions_.empty();
  });
}

void Peers::forget_sessions() {
  for (const auto& member : members_) member->set_session(nullptr);
}

void Peers::count(WorkerCounters& sum) const {
  const base::LockGuard lock(mutex_);
  for (const auto& [key, session] : sessions_) {
    const auto counters = session->counters();
    sum.frames_out += counters.frames_out;
    sum.frames_in += counters.frames_in;
    sum.bytes_out += counters.bytes_out;
    sum.bytes_in += counters.bytes_in;
    sum.requests_in_flight += session->requests().size();
  }
}

net::Traffic Peers::traffic() const {
  std::vector<std::shared_ptr<Session>> sessions;
  net::Traffic sum;
  {
    const base::LockGuard lock(mutex_);
    sum = ended_traffic_;
    for (const auto& [key, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) sum += session->writer().traffic();
  return sum;
}

}  // namespace caftan::actors
