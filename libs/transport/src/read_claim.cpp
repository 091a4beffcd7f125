#include "caftan/transport/internal/read_claim.hpp"

namespace caftan::transport {

namespace {

constexpr std::uint32_t kRepliesBeforeDeferral = 8;
constexpr base::Duration kLongestDeferral = std::chrono::milliseconds(1);
// A deferral saves two system calls and costs a timer: it is worth having only for a thread that claims often.
constexpr std::uint64_t kClaimsWorthDeferring = 3;  // within kLongestDeferral
constexpr base::Duration kSoon = std::chrono::microseconds(250);

}  // namespace

bool ReadClaim::claim() {
  if (reading_.exchange(true, std::memory_order_acquire)) return false;
  const base::LockGuard lock(mutex_);
  ++claims_;
  if (claimed_seldom_ && executor_.clock().now() - released_ < kSoon) claimed_seldom_ = false;
  if (std::exchange(reader_, Reader::waiter) == Reader::poller) arm_locked();
  return true;
}

bool ReadClaim::release(bool may_defer) {
  const bool only_replies = replies_in_row_ >= kRepliesBeforeDeferral;
  const base::LockGuard lock(mutex_);
  reading_.store(false, std::memory_order_release);  // a thread that claims the turn now waits for this lock
  if (!may_defer || !only_replies || wants_room()) {
    read_by_poller_locked();
    return false;
  }
  if (claimed_seldom_) {
    released_ = executor_.clock().now();
    read_by_poller_locked();
    return false;
  }
  reader_ = Reader::none;
  if (!std::exchange(deferral_watched_, true)) watch_deferral_locked();
  return true;
}

void ReadClaim::end_deferral() {
  const base::LockGuard lock(mutex_);
  if (reader_ == Reader::none) read_by_poller_locked();
}

void ReadClaim::arm() {
  const base::LockGuard lock(mutex_);
  arm_locked();
}

void ReadClaim::rearm() {
  const base::LockGuard lock(mutex_);
  if (reader_ == Reader::none) reader_ = Reader::poller;
  arm_locked();
}

bool ReadClaim::begin_spin() {
  const base::LockGuard lock(mutex_);
  if (reader_ != Reader::poller || look_as_runner() == Look::unable) return false;
  channel_.stay_awake();
  return true;
}

void ReadClaim::end_spin() {
  const base::LockGuard lock(mutex_);
  if (reader_ == Reader::poller) arm_locked();
}

/// Asks the channel for the reports that the session needs. While a waiting thread reads by itself, arrived bytes are
/// not reported.
void ReadClaim::arm_locked() { channel_.arm(reader_ == Reader::poller, wants_room()); }

void ReadClaim::read_by_poller_locked() {
  reader_ = Reader::poller;
  arm_locked();
}

/// Ends a deferral when threads have claimed the session seldom for a while; as long as they claim it often, looks
/// again later.
void ReadClaim::watch_deferral_locked() {
  executor_.keep_time(executor_.clock().now() + kLongestDeferral, [weak = self_, claims_seen = claims_] {
    if (const auto self = weak.lock()) self->look_at_deferral(claims_seen);
  });
}

void ReadClaim::look_at_deferral(std::uint64_t claims_seen) {
  const base::LockGuard lock(mutex_);
  claimed_seldom_ = claims_ - claims_seen < kClaimsWorthDeferring;
  if (reader_ != Reader::poller && !claimed_seldom_) return watch_deferral_locked();
  deferral_watched_ = false;
  if (reader_ == Reader::none) read_by_poller_locked();
}

}  // namespace caftan::transport
