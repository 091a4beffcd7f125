#include "caftan/net/internal/admission.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace caftan::net {

// The comparison is written so that sizes near 2^64 cannot overflow.
bool AdmissionWindow::fits(std::uint64_t bytes) const noexcept {
  return holders_ == 0 || (holders_ < most_ && outstanding_ <= limit_ && bytes <= limit_ - outstanding_);
}

Result<void> AdmissionWindow::try_acquire(std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  if (closed_) return *closed_;
  if (holders_ >= most_) {
    return Error(Errc::overloaded, std::to_string(holders_) +
                                       " requests are in flight to this peer already "
                                       "(limits.pending_calls)");
  }
  if (!waiting_.empty() || !fits(bytes)) {
    return Error(Errc::overloaded, std::to_string(bytes) + " bytes do not fit: " + std::to_string(outstanding_) +
                                       " of " + std::to_string(limit_) + " are outstanding and " +
                                       std::to_string(waiting_.size()) + " requests wait");
  }
  outstanding_ += bytes;
  ++holders_;
  return {};
}

Result<AdmissionWindow::WaiterId> AdmissionWindow::acquire_or_wait(std::uint64_t bytes, Waiter waiter) {
  const base::LockGuard lock(mutex_);
  if (closed_) return *closed_;
  if (waiting_.empty() && fits(bytes)) {
    outstanding_ += bytes;
    ++holders_;
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
  std::vector<Waiter> admitted;
  {
    const base::LockGuard lock(mutex_);
    outstanding_ -= bytes;
    --holders_;
    admitted = admit_waiters();
  }
  for (Waiter& waiter : admitted) waiter({});
}

void AdmissionWindow::close(Error reason) {
  std::deque<Waiting> ended;
  {
    const base::LockGuard lock(mutex_);
    if (!closed_) closed_ = std::move(reason);
    reason = *closed_;
    ended.swap(waiting_);
  }
  for (Waiting& waiting : ended) waiting.waiter(reason);
}

std::vector<AdmissionWindow::Waiter> AdmissionWindow::admit_waiters() {
  std::vector<Waiter> admitted;
  while (!waiting_.empty() && fits(waiting_.front().bytes)) {
    outstanding_ += waiting_.front().bytes;
    ++holders_;
    admitted.push_back(std::move(waiting_.front().waiter));
    waiting_.pop_front();
  }
  return admitted;
}

std::uint64_t AdmissionWindow::outstanding() const {
  const base::LockGuard lock(mutex_);
  return outstanding_;
}

std::size_t AdmissionWindow::waiting() const {
  const base::LockGuard lock(mutex_);
  return waiting_.size();
}

}  // namespace caftan::net
