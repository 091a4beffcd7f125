#include "caftan/transport/internal/life_watch.hpp"

#include <utility>

namespace caftan::transport {

LifeWatch::LifeWatch(PollingExecutor& executor, Channel& channel, const std::optional<LivenessOptions>& options,
                     const std::string& peer)
    : executor_(executor), channel_(channel), watches_(options.has_value()) {
  if (options) liveness_.emplace(*options, peer, executor.clock().now());
}

void LifeWatch::start(std::weak_ptr<LifeWatch> self, Events events) {
  if (!watches_) return;
  self_ = std::move(self);
  events_ = std::move(events);
  look();
}

void LifeWatch::on_bytes_in(std::size_t count) noexcept {
  if (!watches_) return;
  const base::LockGuard lock(mutex_);
  liveness_->on_bytes_in(executor_.clock().now(), count);
}

void LifeWatch::on_bytes_out(std::size_t count) noexcept {
  if (!watches_) return;
  const base::LockGuard lock(mutex_);
  liveness_->on_bytes_out(executor_.clock().now(), count);
}

void LifeWatch::look() {
  Liveness::Action action;
  Error dead;
  base::TimePoint next;
  {
    const base::LockGuard lock(mutex_);
    if (const std::uint64_t beats = channel_.beats(); beats != std::exchange(beats_, beats)) {
      liveness_->on_bytes_in(executor_.clock().now(), 1);
    }
    action = liveness_->poll(executor_.clock().now(), channel_.has_unread());
    if (action == Liveness::Action::dead) dead = liveness_->error();
    next = liveness_->next_poll();
  }
  if (action == Liveness::Action::dead) return events_.on_dead(dead);
  if (action == Liveness::Action::send_ping) events_.show_life();
  executor_.keep_time(next, [weak = self_] {
    if (const auto self = weak.lock(); self && !self->stopped_.load(std::memory_order_acquire)) self->look();
  });
}

}  // namespace caftan::transport
