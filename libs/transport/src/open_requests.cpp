#include "caftan/transport/internal/open_requests.hpp"

namespace caftan::transport {

namespace {

constexpr std::uint64_t kReplyRoom = 4096;  // bytes of the window for a reply, beyond the size of the request

}  // namespace

std::uint64_t OpenRequests::room_for(std::uint64_t size) noexcept { return 2 * size + kReplyRoom; }

Result<void> OpenRequests::try_acquire(std::uint64_t room) {
  if (const auto admitted = window_.try_acquire(room); !admitted) {
    return Error(admitted.error().code(), peer_, admitted.error().text());
  }
  return {};
}

Result<void> OpenRequests::acquire(std::uint64_t room, base::TimePoint deadline) {
  return executor_.with_wait([&](base::Executor::Wait& wait) -> Result<void> {
    struct Shared {
      explicit Shared(base::WaitPoint& waiter) : point(&waiter) {}
      base::Mutex mutex;
      base::WaitPoint* point CAFTAN_GUARDED_BY(mutex);  // null once the wait is over; then no notification is due
      Result<void> admitted CAFTAN_GUARDED_BY(mutex);
    };
    const auto shared = std::make_shared<Shared>(wait.point());
    const auto id = window_.acquire_or_wait(room, [shared](Result<void> admitted) {
      const base::LockGuard lock(shared->mutex);
      shared->admitted = std::move(admitted);
      if (shared->point) shared->point->notify();
    });
    if (!id) return id.error().at(peer_);
    if (*id == 0) return {};
    wait.wait(deadline, nullptr);
    const bool gave_up = window_.cancel(*id);
    const base::LockGuard lock(shared->mutex);
    shared->point = nullptr;
    if (gave_up) {
      return Error(
          Errc::timeout, peer_,
          "there was no room in time: limits.pending_calls and limits.send_queue bound what is under way to " + peer_);
    }
    return shared->admitted;
  });
}

Result<CallId> OpenRequests::insert(const std::shared_ptr<ReplySink>& sink, std::uint64_t room,
                                    base::TimePoint deadline) {
  auto call = table_.insert(Pending{sink, room}, deadline);
  if (!call) {
    window_.release(room);
    return call.error().at(peer_);
  }
  if (deadline != base::kNever) arm_expiry(deadline);
  return call;
}

bool OpenRequests::forget(CallId call) {
  const auto entry = table_.take(call);
  if (entry) window_.release(entry->sink.room);
  return entry.has_value();
}

void OpenRequests::answer(CallId call, wire::InFrame&& frame) {
  const auto entry = table_.take(call);
  if (!entry) return;
  window_.release(entry->sink.room);
  entry->sink.sink->on_reply(std::move(frame));
}

void OpenRequests::fail(Pending pending, const Error& error) {
  window_.release(pending.room);
  pending.sink->on_reply(error);
}

void OpenRequests::send_cancel(CallId call) {
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::cancel;
  frame.header.call = call.value;
  writer_.send(frame);
}

void OpenRequests::cancel(CallId call, Error reason) {
  auto entry = table_.take(call);
  if (!entry) return;
  send_cancel(call);
  fail(std::move(entry->sink), reason.at(peer_));
}

void OpenRequests::end(const Error& reason) {
  window_.close(reason);
  for (auto& entry : table_.take_all(reason)) fail(std::move(entry.sink), reason);
}

/// Makes sure that a task looks at the deadlines no later than `deadline`.
void OpenRequests::arm_expiry(base::TimePoint deadline) {
  if (deadline >= expiry_armed_.load(std::memory_order_acquire)) return;
  const base::LockGuard lock(expiry_mutex_);
  if (deadline >= expiry_armed_.load(std::memory_order_relaxed)) return;
  expiry_armed_.store(deadline, std::memory_order_release);
  executor_.post_at(deadline, [weak = self_, deadline] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const base::LockGuard armed(self->expiry_mutex_);
      // A task for an earlier deadline was posted since; it takes over.
      if (self->expiry_armed_.load() != deadline) return;
      self->expiry_armed_.store(base::kNever, std::memory_order_release);
    }
    self->expire();
  });
}

/// Fails the requests whose deadlines have passed.
void OpenRequests::expire() {
  for (auto& entry : table_.expire(executor_.clock().now())) {
    send_cancel(entry.id);
    fail(std::move(entry.sink),
         Error(Errc::timeout, peer_, "no reply from " + peer_ + " within the time-out of the call"));
  }
  if (const base::TimePoint next = table_.next_deadline(); next != base::kNever) arm_expiry(next);
}

}  // namespace caftan::transport
