#include "baton_executor.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "caftan/rpc/ambient.hpp"

namespace caftan::test {

class BatonExecutor::BatonWait final : public base::Executor::Wait, public base::WaitPoint {
 public:
  explicit BatonWait(BatonExecutor& executor) : executor_(executor) {}
  base::WaitPoint& point() noexcept override { return *this; }

  void notify() noexcept override {
    const std::lock_guard lock(executor_.mutex_);
    notified_ = true;
    if (!place_) return;
    executor_.waiting_.remove(place_);
    place_->notified = true;
    executor_.ready_.push_back(place_);
  }

  bool wait(base::TimePoint deadline, base::ReadableSource*) override {
    std::unique_lock lock(executor_.mutex_);
    if (notified_) return true;
    Place place;
    place.deadline = deadline;
    place_ = &place;
    executor_.waiting_.push_back(&place);
    executor_.pass_on();
    executor_.wait_for_baton(place, lock);
    place_ = nullptr;
    return place.notified;
  }

 private:
  BatonExecutor& executor_;
  Place* place_ = nullptr;
  bool notified_ = false;
};

BatonExecutor::~BatonExecutor() {
  run_until_idle();
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty()) {
      std::fputs("BatonExecutor: ends while a thread waits\n", stderr);
      std::abort();
    }
    ending_ = true;
    for (Place& place : places_) place.changed.notify_one();
  }
  for (std::thread& worker : workers_) worker.join();
}

base::Executor::Wait* BatonExecutor::make_wait(std::byte* room) {
  static_assert(sizeof(BatonWait) <= kWaitSize);
  return ::new (room) BatonWait(*this);
}

void BatonExecutor::post(base::Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
}

void BatonExecutor::post_at(base::TimePoint when, base::Task task) {
  const std::lock_guard lock(mutex_);
  timers_.emplace(when, std::move(task));
}

void BatonExecutor::run_until_idle() { advance(base::Duration::zero()); }

void BatonExecutor::advance(base::Duration by) {
  std::unique_lock lock(mutex_);
  Place place;
  patient_ = &place;
  patient_until_ = clock_.now() + by;
  pass_on();
  wait_for_baton(place, lock);
}

void BatonExecutor::work(Place& place) {
  std::unique_lock lock(mutex_);
  for (;;) {
    place.changed.wait(lock, [&] { return place.has_baton || ending_; });
    if (!place.has_baton) return;
    {
      base::Task task = std::move(place.task);
      lock.unlock();
      Ambient ambient;
      ambient.executor = this;
      const AmbientSwap swap(&ambient);
      task();
    }
    lock.lock();
    place.has_baton = false;
    idle_.push_back(&place);
    pass_on();
  }
}

void BatonExecutor::pass_on() {
  for (;;) {
    if (!ready_.empty()) {
      Place* const next = ready_.front();
      ready_.pop_front();
      return grant(*next);
    }
    if (!tasks_.empty()) {
      if (idle_.empty()) {
        places_.emplace_back();
        idle_.push_back(&places_.back());
        workers_.emplace_back([this, place = &places_.back()] { work(*place); });
      }
      Place* const worker = idle_.back();
      idle_.pop_back();
      worker->task = std::move(tasks_.front());
      tasks_.pop_front();
      return grant(*worker);
    }
    move_time(patient_ ? patient_until_ : base::kNever);
    if (ready_.empty() && tasks_.empty()) return grant(*std::exchange(patient_, nullptr));
  }
}

void BatonExecutor::move_time(base::TimePoint at_most) {
  base::TimePoint next = timers_.empty() ? base::kNever : timers_.begin()->first;
  for (const Place* place : waiting_) next = std::min(next, place->deadline);
  if (next == base::kNever && !patient_) {
    std::fputs("BatonExecutor: deadlock, every thread waits for ever\n", stderr);
    std::abort();
  }
  const base::TimePoint to = std::min(next, at_most);
  if (to > clock_.now()) clock_.advance(to - clock_.now());
  while (!timers_.empty() && timers_.begin()->first <= clock_.now()) {
    tasks_.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if ((*at)->deadline <= clock_.now()) {
      ready_.push_back(*at);
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
}

void BatonExecutor::grant(Place& place) {
  place.has_baton = true;
  place.changed.notify_one();
}

void BatonExecutor::wait_for_baton(Place& place, std::unique_lock<std::mutex>& lock) {
  place.changed.wait(lock, [&] { return place.has_baton; });
}

}  // namespace caftan::test
