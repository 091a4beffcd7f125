/// `BatonExecutor`: an executor for tests on which one thread at a time runs, in a fixed order, and time moves only
/// when nothing else can go on. The test's thread takes part: it runs until it waits or calls `run_until_idle`.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "caftan/base/executor.hpp"

namespace caftan::test {

class BatonExecutor final : public base::Executor {
 public:
  BatonExecutor() = default;
  BatonExecutor(const BatonExecutor&) = delete;
  BatonExecutor& operator=(const BatonExecutor&) = delete;
  /// Runs the tasks that are left, then ends its threads. A thread that still waits for ever ends the process with a
  /// message.
  ~BatonExecutor() override;

  void post(base::Task task) override;
  void post_at(base::TimePoint when, base::Task task) override;
  const base::Clock& clock() const noexcept override { return clock_; }
  /// Its waits read no frames.
  bool inside_reading_wait() const noexcept override { return false; }

  /// Runs all other threads until none can go on at the present time.
  void run_until_idle();
  /// Runs all other threads while the clock moves by `by`.
  void advance(base::Duration by);
  /// Returns the largest number of threads that were in the middle of a task at once.
  std::size_t most_threads() const { return workers_.size(); }

 protected:
  Wait* make_wait(std::byte* room) override;

 private:
  class BatonWait;
  /// One thread's place in the order.
  struct Place {
    std::condition_variable changed;
    bool has_baton = false;
    bool notified = false;
    base::TimePoint deadline = base::kNever;
    base::Task task;
  };

  void work(Place& place);
  /// Gives the baton to the next thread; the caller holds it and mutex_.
  void pass_on();
  void grant(Place& place);
  void wait_for_baton(Place& place, std::unique_lock<std::mutex>& lock);
  /// Moves the clock to the next moment at which something happens; ends the process when there is none.
  void move_time(base::TimePoint at_most);

  std::mutex mutex_;
  base::ManualClock clock_;
  std::deque<base::Task> tasks_;
  std::multimap<base::TimePoint, base::Task> timers_;
  std::deque<Place*> ready_;         // notified, first in first out
  std::list<Place*> waiting_;        // not notified
  std::vector<Place*> idle_;         // worker threads without a task
  Place* patient_ = nullptr;         // in run_until_idle or advance
  base::TimePoint patient_until_{};  // the latest time to which the clock may move before the patient thread goes on
  bool ending_ = false;
  std::list<Place> places_;
  std::vector<std::thread> workers_;
};

}  // namespace caftan::test
