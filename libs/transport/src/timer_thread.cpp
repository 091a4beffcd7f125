#include "caftan/transport/internal/timer_thread.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace caftan::transport {

bool TimerThread::later(const Timer& a, const Timer& b) noexcept {
  return std::tie(a.when, a.order) > std::tie(b.when, b.order);
}

bool TimerThread::start() {
  auto thread = Thread::make([this] { run(); });
  if (!thread) return false;
  thread_.emplace(*std::move(thread));
  return true;
}

void TimerThread::stop() {
  {
    const base::LockGuard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_) thread_->join();
  thread_.reset();
  std::vector<Timer> dropped;  // destroyed without the lock: the destructor of a task may post another task
  const base::LockGuard lock(mutex_);
  dropped.swap(timers_);
}

void TimerThread::add(base::TimePoint when, Place place, base::Task task) {
  const base::LockGuard lock(mutex_);
  if (stopping_) return;
  const bool is_first = timers_.empty() || when < timers_.front().when;
  timers_.push_back(Timer{when, order_++, place, std::move(task)});
  std::push_heap(timers_.begin(), timers_.end(), &later);
  if (is_first) changed_.notify_one();
}

void TimerThread::run() {
  base::UniqueLock lock(mutex_);
  while (!stopping_) {
    if (timers_.empty() || timers_.front().when == base::kNever) {
      changed_.wait(lock.native());
      continue;
    }
    const base::TimePoint first = timers_.front().when;
    if (first > clock_.now()) {
      changed_.wait_until(lock.native(), first);
      continue;
    }
    std::pop_heap(timers_.begin(), timers_.end(), &later);
    Timer timer = std::move(timers_.back());
    timers_.pop_back();
    lock.unlock();
    if (timer.place == Place::here) {
      timer.task();
    } else {
      to_runners_(std::move(timer.task));
    }
    timer.task = base::Task();
    lock.lock();
  }
}

}  // namespace caftan::transport
