#include "caftan/transport/internal/poll_set.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

namespace caftan::transport {

namespace {

constexpr std::uint64_t kWakeKey = ~std::uint64_t{0};

epoll_event event_of(std::uint32_t events, std::uint64_t key) {
  epoll_event event{};
  event.events = (events & EPOLLET) != 0 ? events : events | EPOLLONESHOT;
  event.data.u64 = key;
  return event;
}

}  // namespace

PollSet::PollSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  epoll_event event{};
  // Each write of the counter is one edge and wakes one runner; the counter is never read.
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kWakeKey;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_fd_, &event);
}

PollSet::~PollSet() {
  ::close(wake_fd_);
  ::close(epoll_);
}

void PollSet::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

int PollSet::wait(epoll_event& event, int timeout) { return ::epoll_wait(epoll_, &event, 1, timeout); }

int PollSet::wait_for(epoll_event& event, base::Duration period) {
  const timespec time{0, period.count()};
  const int count = ::epoll_pwait2(epoll_, &event, 1, &time, nullptr);
  return count >= 0 || errno != ENOSYS ? count : ::epoll_wait(epoll_, &event, 1, 1);
}

bool PollSet::is_wake(const epoll_event& event) noexcept { return event.data.u64 == kWakeKey; }

std::shared_ptr<Pollable> PollSet::find(const epoll_event& event) {
  const std::uint64_t key = event.data.u64;
  const base::LockGuard lock(mutex_);
  return key < slots_.size() ? slots_[key] : nullptr;
}

void PollSet::watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) {
  {
    const base::LockGuard lock(mutex_);
    if (free_slots_.empty()) {
      pollable->key_ = slots_.size();
      slots_.push_back(pollable);
    } else {
      pollable->key_ = free_slots_.back();
      free_slots_.pop_back();
      slots_[pollable->key_] = pollable;
    }
  }
  epoll_event event = event_of(events, pollable->key_);
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, pollable->fd(), &event);
}

void PollSet::rearm(const Pollable& pollable, std::uint32_t events) {
  epoll_event event = event_of(events, pollable.key_);
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, pollable.fd(), &event);
}

void PollSet::unwatch(const Pollable& pollable) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, pollable.fd(), nullptr);
  std::shared_ptr<Pollable> last;  // destroyed outside the lock
  const base::LockGuard lock(mutex_);
  if (pollable.key_ < slots_.size() && slots_[pollable.key_].get() == &pollable) {
    last = std::move(slots_[pollable.key_]);
    free_slots_.push_back(static_cast<std::uint32_t>(pollable.key_));
  }
}

}  // namespace caftan::transport
