#include "worker/leaver.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/make_message.hpp>

#include "caftan/net/internal/handshake.hpp"
#include "worker/root_actor.hpp"

namespace caftan::actors {

using transport::Session;

namespace {

std::vector<std::string> names_of(const Peers& peers) {
  std::vector<std::string> names;
  for (std::uint32_t id = 0; id < peers.size(); ++id) names.push_back(peers.at(WorkerId{id}).name());
  return names;
}

}  // namespace

Leaver::Leaver(const Parts& parts) : parts_(parts), rules_(names_of(parts.peers), parts.ports.life()) {}

Result<void> Leaver::leave_together(base::Duration timeout) {
  if (timeout < base::Duration::zero()) {
    return Error(Errc::bad_arguments, parts_.ports.name(), "leave_together: the timeout is negative; 0 means none");
  }
  if (base::UserCode::runs_here()) {
    return Error(Errc::would_deadlock, parts_.ports.name(),
                 "leave_together in a function, method or continuation waits for its own end: call it on a thread of "
                 "your own");
  }
  {
    const base::LockGuard lock(mutex_);
    if (auto begun = rules_.begin_call(); !begun) return begun;
  }
  Result<void> outcome = wait_until_over(timeout);
  const base::LockGuard lock(mutex_);
  rules_.end_call();
  return outcome;
}

Result<void> Leaver::wait_until_over(base::Duration timeout) {
  const base::TimePoint now = parts_.ports.executor().clock().now();
  const bool is_bounded = timeout > base::Duration::zero() && timeout < base::kNever - now;
  const base::TimePoint deadline = is_bounded ? now + timeout : base::kNever;
  while (true) {
    std::optional<std::uint64_t> round;
    {
      const base::LockGuard lock(mutex_);
      if (auto outcome = rules_.outcome()) return *std::move(outcome);
      round = rules_.due();
    }
    const bool in_time = !round ? wait_for_change(deadline) : *round == 0 || parts_.work.wait_until_quiet(deadline);
    if (!in_time) {
      const base::LockGuard lock(mutex_);
      if (auto outcome = rules_.outcome()) return *std::move(outcome);
      return rules_.why_late(timeout);
    }
    if (round) report(*round);
  }
}

bool Leaver::wait_for_change(base::TimePoint deadline) {
  return parts_.ports.executor().with_wait([&](base::Executor::Wait& wait) {
    {
      const base::LockGuard lock(mutex_);
      if (has_changed()) return true;
      waiter_ = &wait.point();
    }
    const bool changed = wait.wait(deadline, nullptr);
    const base::LockGuard lock(mutex_);
    waiter_ = nullptr;
    return changed;
  });
}

/// Sends the report of `round`, unless the report of another round is due by now.
void Leaver::report(std::uint64_t round) {
  const std::uint64_t work = parts_.work.work();
  net::LeaveReport report;
  {
    const base::LockGuard lock(mutex_);
    if (rules_.outcome() || rules_.due() != round) return;
    report = rules_.report(work);
  }
  for (std::uint32_t id = 0; id < parts_.peers.size(); ++id) {
    const auto session = WorkerId{id} == parts_.ports.id() ? nullptr : parts_.peers.at(WorkerId{id}).session();
    if (!session || !(session->peer().features & net::kKnowsLeaveReport)) continue;
    // A worker whose session has ended does not need the report.
    (void)parts_.sender.send_to_root(*session, caf::make_message(report));
  }
}

void Leaver::report_returned(const std::vector<std::string>& to) {
  for (const std::string& name : to) {
    const auto peer = parts_.peers.find(name);
    const auto session = peer ? PeerState::of(*peer).session() : nullptr;
    if (!session || !(session->peer().features & net::kKnowsRunReturned)) continue;
    // A worker whose session has ended does not need the message.
    (void)parts_.sender.send_to_root(*session, caf::make_message(net::RunReturned{}));
  }
}

void Leaver::stop(const Error& reason) {
  const base::LockGuard lock(mutex_);
  rules_.stop(reason);
  notify_if_changed();
}

void Leaver::on_up(const WorkerLife& peer) {
  const base::LockGuard lock(mutex_);
  rules_.on_up(peer);
  notify_if_changed();
}

void Leaver::on_lost(const PeerLost& lost) {
  const base::LockGuard lock(mutex_);
  rules_.on_lost(lost.session->peer().life, lost.reason);
  notify_if_changed();
}

void Leaver::on_report(const Session& from, const net::LeaveReport& report) {
  const base::LockGuard lock(mutex_);
  rules_.on_report(from.peer().life, report);
  notify_if_changed();
}

void Leaver::on_returned(const Session& from) {
  if (parts_.on_peer_returned) parts_.on_peer_returned(from.peer().name);
}

void Leaver::notify_if_changed() {
  if (waiter_ && has_changed()) std::exchange(waiter_, nullptr)->notify();
}

}  // namespace caftan::actors
