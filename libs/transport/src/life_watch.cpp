#include "caftan/transport/internal/life_watch.hpp"

#include <algorithm>
#include <utility>

#include "caftan/wire/frame.hpp"

namespace caftan::transport {

namespace {

// Bytes are found at the next look after them. So while more goes out than signs of life, looks are more frequent than
// those have to be: else a ping would leave although there were bytes a moment ago.
constexpr int kLooksInAnInterval = 4;
constexpr std::uint64_t kSignsOfLife = 2 * wire::kFrameHeaderSize;  // bytes: a ping and a pong

}  // namespace

LifeWatch::LifeWatch(PollingExecutor& executor, Channel& channel, const std::optional<LivenessOptions>& options,
                     const std::string& peer)
    : executor_(executor),
      channel_(channel),
      watches_(options.has_value()),
      active_period_(options ? options->interval / kLooksInAnInterval : base::Duration::zero()),
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
/// went out as spoken right after the last look. So a ping may leave one look too early, never too late. Returns
/// whether more went out than signs of life.
bool LifeWatch::note_counts(base::TimePoint now) {
  const std::uint64_t in = bytes_in_.load(std::memory_order_relaxed);
  const std::uint64_t out = bytes_out_.load(std::memory_order_relaxed);
  const std::uint64_t beats = channel_.beats();
  if (beats != std::exchange(seen_beats_, beats)) liveness_->on_bytes_in(now, 1);
  liveness_->on_bytes_in(now, in - std::exchange(seen_in_, in));
  const std::uint64_t new_out = out - std::exchange(seen_out_, out);
  liveness_->on_bytes_out(looked_, new_out);
  looked_ = now;
  return new_out > kSignsOfLife;
}

void LifeWatch::on_pong_out() noexcept {
  if (!watches_) return;
  const base::LockGuard lock(mutex_);
  liveness_->on_bytes_out(executor_.clock().now(), 1);
}

void LifeWatch::look() {
  Liveness::Action action;
  Error dead;
  base::TimePoint next;
  {
    const base::LockGuard lock(mutex_);
    const base::TimePoint now = executor_.clock().now();
    const bool is_active = note_counts(now);
    action = liveness_->poll(now, channel_.has_unread());
    if (action == Liveness::Action::dead) dead = liveness_->error();
    next = is_active ? std::min(liveness_->next_poll(), now + active_period_) : liveness_->next_poll();
  }
  if (action == Liveness::Action::dead) return events_.on_dead(dead);
  if (action == Liveness::Action::send_ping) events_.show_life();
  executor_.keep_time(next, [weak = self_] {
    if (const auto self = weak.lock(); self && !self->stopped_.load(std::memory_order_acquire)) self->look();
  });
}

}  // namespace caftan::transport
