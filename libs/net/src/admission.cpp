#include "caftan/net/internal/admission.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace caftan::net {

bool AdmissionWindow::fits(Taken taken, std::uint64_t bytes) const noexcept {
  if (taken.holders() == 0) return true;
  const std::uint64_t counted = std::min(bytes, kMostBytes);
  return taken.holders() < most_ && taken.bytes() <= limit_ && counted <= limit_ - taken.bytes();
}

/// Acquires the bytes if they fit; whether a caller waits is not looked at.
bool AdmissionWindow::take(std::uint64_t bytes) noexcept {
  Taken taken = taken_.load();
  do {
    if (!fits(taken, bytes)) return false;
  } while (!taken_.compare_exchange_weak(taken, Taken{taken.value + Taken::one(bytes).value}));
  return true;
}

Result<void> AdmissionWindow::try_acquire(std::uint64_t bytes) {
  if (!needs_lock_.load() && take(bytes)) return {};
  const base::LockGuard lock(mutex_);
  if (!closed_ && waiting_.empty() && take(bytes)) return {};
  return why_not(bytes);
}

Result<void> AdmissionWindow::why_not(std::uint64_t bytes) const {
  if (closed_) return *closed_;
  const Taken taken = taken_.load();
  if (taken.holders() >= most_) {
    return Error(Errc::overloaded, std::to_string(taken.holders()) +
                                       " requests are in flight to this peer already "
                                       "(limits.pending_calls)");
  }
  return Error(Errc::overloaded, std::to_string(bytes) + " bytes do not fit: " + std::to_string(taken.bytes()) +
                                     " of " + std::to_string(limit_) + " are outstanding and " +
                                     std::to_string(waiting_.size()) + " requests wait");
}

Result<AdmissionWindow::WaiterId> AdmissionWindow::acquire_or_wait(std::uint64_t bytes, Waiter waiter) {
  const base::LockGuard lock(mutex_);
  if (closed_) return *closed_;
  // Set before taken_ is read: either this caller reads what a release has given back, or that release reads that a
  // caller waits.
  needs_lock_.store(true);
  if (waiting_.empty() && take(bytes)) {
    needs_lock_.store(false);
    return WaiterId{0};
  }
  waiting_.push_back({++last_id_, bytes, std::move(waiter)});
  return last_id_;
}

bool AdmissionWindow::cancel(WaiterId id) {
  std::vector<Waiter> admitted;
  Waiter cancelled;  // destroyed outside the lock
  {
    const base::LockGuard lock(mutex_);
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [id](const Waiting& w) { return w.id == id; });
    if (found == waiting_.end()) return false;
    cancelled = std::move(found->waiter);
    waiting_.erase(found);
    admitted = admit_waiters();  // the cancelled waiter may have held back smaller ones behind it
  }
  for (Waiter& waiter : admitted) waiter({});
  return true;
}

void AdmissionWindow::release(std::uint64_t bytes) {
  Taken taken = taken_.load();
  while (!taken_.compare_exchange_weak(taken, Taken{taken.value - Taken::one(bytes).value})) {
  }
  if (!needs_lock_.load()) return;
  std::vector<Waiter> admitted;
  {
    const base::LockGuard lock(mutex_);
    admitted = admit_waiters();
  }
  for (Waiter& waiter : admitted) waiter({});
}

void AdmissionWindow::close(Error reason) {
  std::deque<Waiting> ended;
  {
    const base::LockGuard lock(mutex_);
    if (!closed_) closed_ = std::move(reason);
    needs_lock_.store(true);
    reason = *closed_;
    ended.swap(waiting_);
  }
  for (Waiting& waiting : ended) waiting.waiter(reason);
}

std::vector<AdmissionWindow::Waiter> AdmissionWindow::admit_waiters() {
  std::vector<Waiter> admitted;
  while (!waiting_.empty() && take(waiting_.front().bytes)) {
    admitted.push_back(std::move(waiting_.front().waiter));
    waiting_.pop_front();
  }
  if (waiting_.empty() && !closed_) needs_lock_.store(false);
  return admitted;
}

std::size_t AdmissionWindow::waiting() const {
  const base::LockGuard lock(mutex_);
  return waiting_.size();
}

}  // namespace caftan::net
