#include "turns.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace caftan::optim {

void Turns::take(Job job) {
  std::function<void()> timer;
  {
    Waiting waiting{std::move(job), Ambient::capture(), base::kNever};
    const base::LockGuard lock(mutex_);
    if (const auto caller = caller_.lock(); caller && bound_ && !bound_->overdue) {
      limit_locked(waiting, caller->executor().clock().now());
    }
    waiting_.push_back(std::move(waiting));
    timer = set_timer_locked();
  }
  if (timer) timer();
  begin_next();
}

void Turns::end() {
  {
    const base::LockGuard lock(mutex_);
    running_ = false;
    bound_.reset();
    for (Waiting& waiting : waiting_) waiting.until = base::kNever;
  }
  begin_next();
}

void Turns::begin_next() {
  base::UniqueLock lock(mutex_);
  if (std::exchange(beginning_, true)) return;  // the thread inside of `begin` sees the change and begins the next job
  while (!running_ && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = true;
    lock.unlock();
    {
      if (const Ambient* const here = Ambient::current()) next.ambient.turn = here->turn;
      const AmbientSwap swap(&next.ambient);
      next.job.begin();
      next.job = {};  // destroyed before the lock is taken: the job may hold the last reference to any object
    }
    lock.lock();
  }
  beginning_ = false;
}

void Turns::bound(base::TimePoint until, std::string name, std::function<void()> overdue) {
  std::function<void()> timer;
  {
    const base::LockGuard lock(mutex_);
    bound_ = Bound{until, std::move(name), std::move(overdue)};
    timer = set_timer_locked();
  }
  if (timer) timer();
}

void Turns::limit_locked(Waiting& waiting, base::TimePoint now) {
  if (wait_ && *wait_ < base::kNever - now) waiting.until = now + *wait_;
}

/// Returns the function that sets a timer for the next limit; empty if a timer that is early enough is set already:
/// timers cannot be cancelled.
std::function<void()> Turns::set_timer_locked() {
  base::TimePoint first = bound_ && bound_->overdue ? bound_->until : base::kNever;
  for (const Waiting& waiting : waiting_) first = std::min(first, waiting.until);
  if (first >= timer_) return {};
  timer_ = first;
  return [caller = caller_, first, self = weak_from_this()] {
    const auto alive = caller.lock();
    if (!alive) return;
    alive->executor().post_at(first, [self] {
      if (const auto turns = self.lock()) turns->look();
    });
  };
}

void Turns::look() {
  const auto caller = caller_.lock();
  if (!caller) return;
  const base::TimePoint now = caller->executor().clock().now();
  std::function<void()> overdue;
  std::vector<Job> refused;
  std::string name;
  std::function<void()> timer;
  {
    const base::LockGuard lock(mutex_);
    timer_ = base::kNever;
    if (bound_ && bound_->overdue && bound_->until <= now) {
      overdue = std::exchange(bound_->overdue, nullptr);
      for (Waiting& waiting : waiting_) limit_locked(waiting, now);
    }
    if (bound_) name = bound_->name;
    for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
      if (waiting->until > now) {
        ++waiting;
        continue;
      }
      refused.push_back(std::move(waiting->job));
      waiting = waiting_.erase(waiting);
    }
    timer = set_timer_locked();
  }
  if (timer) timer();
  if (overdue) overdue();
  for (const Job& job : refused) {
    job.refuse(Error(Errc::timeout, caller->name(),
                     "has not begun: " + name + " is not confirmed by every owner yet; once it is, repeat this"));
  }
}

}  // namespace caftan::optim
