#include "caftan/transport/internal/life_watch.hpp"

#include <algorithm>
#include <utility>

namespace caftan::transport {

namespace {

// Bytes are found at the next look after them, so looks are more frequent than signs of life have to be.
constexpr int kLooksInAnInterval = 4;

}  // namespace

LifeWatch::LifeWatch(PollingExecutor& executor, Channel& channel, const std::optional<LivenessOptions>& options,
                     const std::string& peer)
    : executor_(executor),
      channel_(channel),
      watches_(options.has_value()),
      period_(options ? options->interval / kLooksInAnInterval : base::Duration::zero()),
      looked_(executor.clock().now()) {
  if (options) liveness_.emplace(*options, peer, looked_);
}

void LifeWatch::start(std::weak_ptr<LifeWatch> self, Events events) {
  if (!watches_) return;
  self_ = std::move(self);
  events_ = std::move(events);
  look();
}

/// Passes on what was counted since the last look, on the safe side: bytes that came in as heard now, and bytes that
/// went out as spoken right after the last look. So a ping may leave one look too early, never too late.
void LifeWatch::note_counts(base::TimePoint now) {
  const std::uint64_t in = bytes_in_.load(std::memory_order_relaxed);
  const std::uint64_t out = bytes_out_.load(std::memory_order_relaxed);
  const std::uint64_t beats = channel_.beats();
  if (beats != std::exchange(seen_beats_, beats)) liveness_->on_bytes_in(now, 1);
  liveness_->on_bytes_in(now, in - std::exchange(seen_in_, in));
  liveness_->on_bytes_out(looked_, out - std::exchange(seen_out_, out));
  looked_ = now;
}

void LifeWatch::look() {
  Liveness::Action action;
  Error dead;
  base::TimePoint next;
  {
    const base::LockGuard lock(mutex_);
    const base::TimePoint now = executor_.clock().now();
    note_counts(now);
    action = liveness_->poll(now, channel_.has_unread());
    if (action == Liveness::Action::dead) dead = liveness_->error();
    next = std::min(liveness_->next_poll(), now + period_);
  }
  if (action == Liveness::Action::dead) return events_.on_dead(dead);
  if (action == Liveness::Action::send_ping) events_.show_life();
  executor_.keep_time(next, [weak = self_] {
    if (const auto self = weak.lock(); self && !self->stopped_.load(std::memory_order_acquire)) self->look();
  });
}

}  // namespace caftan::transport
