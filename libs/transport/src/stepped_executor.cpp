#include "caftan/transport/stepped_executor.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "caftan/transport/internal/poll_set.hpp"

namespace caftan::transport {

namespace {

constexpr base::Duration kDeadlock =
    std::chrono::hours(2);  // longest wait by the manual clock: a longer one is a bug of the test

[[noreturn]] void fail(const char* text) {
  std::fprintf(stderr, "SteppedExecutor: %s\n", text);
  std::abort();
}

bool later(base::TimePoint a_when, std::uint64_t a_order, base::TimePoint b_when, std::uint64_t b_order) {
  return std::tie(a_when, a_order) > std::tie(b_when, b_order);
}

}  // namespace

struct SteppedExecutor::Runner {
  std::thread thread;
  std::condition_variable turn;
  base::Task task;
};

class SteppedExecutor::SteppedWait final : public base::Executor::Wait, public base::WaitPoint {
 public:
  explicit SteppedWait(SteppedExecutor& executor) : executor_(executor) {}
  base::WaitPoint& point() noexcept override { return *this; }
  void notify() noexcept override { notified_ = true; }

  bool wait(base::TimePoint deadline, base::ReadableSource*) override {
    if (notified_) return true;
    deadline_ = deadline;
    if (Runner* runner = this_runner()) {
      std::unique_lock lock(executor_.mutex_);
      runner_ = runner;
      executor_.blocked_.push_back(this);
      executor_.baton_ = nullptr;
      executor_.driver_.notify_one();
      runner->turn.wait(lock, [&] { return executor_.baton_ == runner; });
      return notified_;
    }
    const base::TimePoint begun = executor_.clock_.now();
    while (!notified_ && executor_.clock_.now() < deadline_) {
      if (executor_.step()) continue;
      if (executor_.clock_.now() - begun > kDeadlock) fail("the test's thread waits for something that never comes");
      if (!has_timer_until_deadline() || !executor_.advance_to_next_timer()) {
        if (deadline_ == base::kNever) fail("the test's thread waits, and nothing is left to do: a deadlock");
        executor_.clock_.advance(deadline_ - executor_.clock_.now());
      }
    }
    return notified_;
  }

 private:
  friend class SteppedExecutor;
  bool has_timer_until_deadline() const {
    const std::lock_guard lock(executor_.mutex_);
    return !executor_.timers_.empty() && executor_.timers_.front().when <= deadline_;
  }
  SteppedExecutor& executor_;
  std::atomic<bool> notified_{false};
  base::TimePoint deadline_ = base::kNever;
  Runner* runner_ = nullptr;
};

SteppedExecutor::Runner*& SteppedExecutor::this_runner() noexcept {
  static thread_local Runner* runner = nullptr;
  return runner;
}

SteppedExecutor::SteppedExecutor(std::uint64_t seed) : random_(seed) {}

SteppedExecutor::~SteppedExecutor() {
  if (!blocked_.empty()) fail("destroyed while a runner waits");
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (const auto& runner : runners_) {
    runner->turn.notify_one();
    runner->thread.join();
  }
}

void SteppedExecutor::post(base::Task task) {
  const std::lock_guard lock(mutex_);
  if (!stopping_) tasks_.push_back(std::move(task));
}

void SteppedExecutor::post_at(base::TimePoint when, base::Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  timers_.push_back(Timer{when, timer_order_++, std::move(task)});
  std::push_heap(timers_.begin(), timers_.end(),
                 [](const Timer& a, const Timer& b) { return later(a.when, a.order, b.when, b.order); });
}

void SteppedExecutor::take_due_timers() {
  while (!timers_.empty() && timers_.front().when <= clock_.now()) {
    std::pop_heap(timers_.begin(), timers_.end(),
                  [](const Timer& a, const Timer& b) { return later(a.when, a.order, b.when, b.order); });
    tasks_.push_back(std::move(timers_.back().task));
    timers_.pop_back();
  }
}

/// Makes tasks of what the sockets report.
void SteppedExecutor::take_events() {
  for (epoll_event event{}; sockets_ && sockets_->wait(event, 0) == 1;) {
    if (auto pollable = sockets_->find(event)) {
      tasks_.emplace_back([pollable = std::move(pollable), events = event.events] { pollable->on_ready(events); });
    }
  }
}

bool SteppedExecutor::may_go_on(const SteppedWait& wait) const {
  return wait.notified_ || wait.deadline_ <= clock_.now();
}

bool SteppedExecutor::step() {
  if (this_runner()) fail("a runner must not step the cluster");
  Runner* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    take_due_timers();
    take_events();
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < blocked_.size(); ++i) {
      if (may_go_on(*blocked_[i])) ready.push_back(i);
    }
    const std::size_t choices = tasks_.size() + ready.size();
    if (choices == 0) return false;
    const std::size_t choice = random_() % choices;
    if (choice < ready.size()) {
      next = blocked_[ready[choice]]->runner_;
      blocked_.erase(blocked_.begin() + static_cast<std::ptrdiff_t>(ready[choice]));
    } else {
      const auto task = tasks_.begin() + static_cast<std::ptrdiff_t>(choice - ready.size());
      if (idle_.empty()) {
        runners_.push_back(std::make_unique<Runner>());
        Runner& runner = *runners_.back();
        runner.thread = std::thread([this, &runner] { run_loop(runner); });
        idle_.push_back(&runner);
      }
      next = idle_.back();
      idle_.pop_back();
      next->task = std::move(*task);
      tasks_.erase(task);
    }
  }
  hand_baton_to(*next);
  return true;
}

void SteppedExecutor::hand_baton_to(Runner& runner) {
  std::unique_lock lock(mutex_);
  baton_ = &runner;
  runner.turn.notify_one();
  driver_.wait(lock, [this] { return baton_ == nullptr; });
}

void SteppedExecutor::run_loop(Runner& runner) {
  this_runner() = &runner;
  std::unique_lock lock(mutex_);
  for (;;) {
    runner.turn.wait(lock, [&] { return baton_ == &runner || stopping_; });
    if (baton_ != &runner) return;
    lock.unlock();
    {
      base::Task task = std::move(runner.task);
      task();
    }
    lock.lock();
    idle_.push_back(&runner);
    baton_ = nullptr;
    driver_.notify_one();
  }
}

std::size_t SteppedExecutor::run(std::size_t most) {
  std::size_t steps = 0;
  while (step()) {
    if (++steps > most) fail("the cluster does not come to rest");
  }
  return steps;
}

void SteppedExecutor::advance(base::Duration by) {
  clock_.advance(by);
  run();
}

bool SteppedExecutor::advance_to_next_timer() {
  base::TimePoint next;
  {
    const std::lock_guard lock(mutex_);
    if (timers_.empty()) return false;
    next = timers_.front().when;
  }
  if (next > clock_.now()) clock_.advance(next - clock_.now());
  return true;
}

void SteppedExecutor::watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) {
  if (!sockets_) sockets_ = std::make_unique<PollSet>();
  sockets_->watch(pollable, events);
}
void SteppedExecutor::rearm(const Pollable& pollable, std::uint32_t events) { sockets_->rearm(pollable, events); }
void SteppedExecutor::unwatch(const Pollable& pollable) { sockets_->unwatch(pollable); }

base::Executor::Wait* SteppedExecutor::make_wait(std::byte* room) {
  static_assert(sizeof(SteppedWait) <= kWaitSize);
  return ::new (room) SteppedWait(*this);
}

}  // namespace caftan::transport
