// When a start is over: the head says where everybody is, hears who has met all, and tells when all have (SE-27).

#include <algorithm>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "worker/worker_core.hpp"

namespace caftan::actors {

using transport::Session;

/// Head: once all have come, everybody learns where everybody is.
void WorkerCore::publish_view() {
  net::View view;
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& peer : peers_) {
      // Up comes before the session is there: whoever sets the last one comes here again.
      if (peer->id() != self_ && (!membership_.is_up(peer->id()) || !peer->session())) return;
    }
    if (!membership_.complete() || std::exchange(view_published_, true)) return;
    view = membership_.view();
    for (const auto& peer : peers_) {
      if (peer->id() != self_) sessions.push_back(peer->session());
    }
  }
  for (const auto& session : sessions) {
    if (!session) continue;
    const auto told = tell_root(*session, caf::make_message(view));
    // One that is gone is found missing by itself.
    if (!told && told.error().code() != Errc::peer_down) {
      return fail_start(Error(told.error().code(), name(), "the list of all workers: " + told.error().message()));
    }
  }
}

Result<void> WorkerCore::tell_root(Session& peer, const caf::message& message) {
  return transport::ActorExchange::send(peer.actors().proxy(transport::Address::root()),
                                        caf::actor_cast<caf::strong_actor_ptr>(root_), message);
}

void WorkerCore::apply_view(const net::View& view) {
  std::vector<WorkerId> to_dial;
  {
    const std::lock_guard lock(mutex_);
    if (const auto applied = membership_.apply(view); !applied) {
      log("the head's view was refused: " + applied.error().message());
      return;
    }
    is_told_ = true;
    for (const net::Join& member : view.members) {
      peers_[member.id.value]->announce(member);
      if (member.id.value < self_.value && !membership_.is_up(member.id)) to_dial.push_back(member.id);
    }
  }
  for (const WorkerId id : to_dial) dial_peer(id);
}

/// Has this worker met all, the head is told; have all met all, the head tells everybody (SE-27).
void WorkerCore::check_met() {
  const bool is_head = self_ == WorkerId{0};
  std::vector<std::shared_ptr<Session>> to_tell;
  {
    const std::lock_guard lock(mutex_);
    if (has_met_all_ || start_error_ || (is_head && !view_published_)) return;
    for (const auto& peer : peers_) {
      if (peer->id() == self_) continue;
      auto session = membership_.is_up(peer->id()) ? peer->session() : nullptr;
      if (!session || (is_head && !peer->has_met_all)) return;
      if (is_head || peer->id() == WorkerId{0}) to_tell.push_back(std::move(session));
    }
    has_met_all_ = true;
  }
  // It always fits; who is gone meanwhile need not hear it.
  for (const auto& session : to_tell) (void)tell_root(*session, caf::make_message(net::Met{}));
  if (is_head) become_ready();
}

void WorkerCore::on_met(const std::shared_ptr<Session>& session) {
  const WorkerId sender = session->peer().id;
  if (self_ != WorkerId{0}) {
    if (sender == WorkerId{0}) become_ready();
    return;
  }
  bool is_over = false;
  {
    const std::lock_guard lock(mutex_);
    const auto present = peers_[sender.value]->session();
    if (!present || present->peer().incarnation != session->peer().incarnation) return;  // of a life that has ended
    peers_[sender.value]->has_met_all = true;
    is_over = has_met_all_;
  }
  if (!is_over) return check_met();
  (void)tell_root(*session, caf::make_message(net::Met{}));  // a new life, after the start of the others
}

void WorkerCore::become_ready() {
  decltype(lost_at_start_) lost;
  std::vector<LostPeer> to_tell;
  {
    const std::lock_guard lock(mutex_);
    if (ready_ || start_error_) return;
    ready_ = true;
    Life starting = Life::starting;
    life_.compare_exchange_strong(starting, Life::serving);
    lost.swap(lost_at_start_);
    for (const auto& [id, how] : lost) {
      if (!membership_.is_up(id)) to_tell.push_back(how);
    }
    if (ready_waiter_) ready_waiter_->notify();
  }
  if (to_tell.empty()) return;
  // References that wait for a session with these workers fail now.
  for (Service* service : services_) service->on_session_start();
  for (const LostPeer& peer : to_tell) tell_lost(*peer.session, peer.reason);
}

void WorkerCore::fail_start(Error error) {
  const std::lock_guard lock(mutex_);
  if (ready_ || start_error_) return;
  start_error_ = std::move(error);
  if (ready_waiter_) ready_waiter_->notify();
}

std::vector<net::MemberAtStart> WorkerCore::members_at_start_locked() const {
  std::vector<net::MemberAtStart> members;
  for (const auto& peer : peers_) {
    const bool is_sibling = std::ranges::find(siblings_, peer->name()) != siblings_.end();
    const bool is_up = peer->id() == self_ || membership_.is_up(peer->id());
    const bool was_up = peer->met.value != 0;
    // Neighbours in one process find each other, and all come to the head.
    const bool would_be_met = options_.network || self_ == WorkerId{0} || !peer->address.empty();
    members.push_back({.name = peer->name(),
                       .is_here = is_up || (is_sibling && !would_be_met && !was_up),
                       .has_left = was_up && !is_up,
                       .would_be_met = would_be_met,
                       .is_meeting = self_ == WorkerId{0} && is_up && peer->id() != self_ && !peer->has_met_all});
  }
  return members;
}

Result<void> WorkerCore::wait_until_ready() {
  const TimePoint deadline = options_.executor->clock().now() + options_.start_timeout;
  options_.executor->with_wait([&](Executor::Wait& wait) {
    {
      const std::lock_guard lock(mutex_);
      if (ready_ || start_error_) return;
      ready_waiter_ = &wait.point();
    }
    wait.wait(deadline, nullptr);
    const std::lock_guard lock(mutex_);
    ready_waiter_ = nullptr;
  });
  const std::lock_guard lock(mutex_);
  if (ready_) return {};
  if (start_error_) return *start_error_;
  start_error_ = why_not_ready_locked();
  return *start_error_;
}

Error WorkerCore::why_not_ready_locked() const {
  for (const auto& peer : peers_) {
    if (peer->duplicate.code() == Errc::ok) continue;
    return {Errc::duplicate_worker, name(),
            "still refused after " + format_duration(options_.start_timeout.count()) + ": " + peer->duplicate.worker() +
                ": " + peer->duplicate.text()};
  }
  std::string text = net::who_is_missing(members_at_start_locked(), is_told_, options_.start_timeout);
  if (last_dial_error_.code() != Errc::ok) text += " (last: " + last_dial_error_.text() + ")";
  if (last_refusal_.code() != Errc::ok) text += " (refused: " + last_refusal_.message() + ")";
  return {Errc::timeout, name(), std::move(text)};
}

}  // namespace caftan::actors
