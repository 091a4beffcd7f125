/// The executor of deterministic tests: runners take turns under a baton, a seed chooses the next one, and the clock
/// moves by hand. A whole cluster of Workers over loopback channels repeats exactly for the same seed; over sockets it
/// does as far as the kernel has each byte there when it was written, which it promises for none. Start with
/// `SteppedExecutor`, `run` and `advance`; a blocking call on the test's thread steps the cluster until it can go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "caftan/transport/poller.hpp"

namespace caftan::transport {

class PollSet;

/// Threads: the test's thread drives; only the holder of the baton runs.
class SteppedExecutor final : public PollingExecutor {
 public:
  explicit SteppedExecutor(std::uint64_t seed);
  /// Tasks that are left are dropped. Precondition: no runner is blocked in a wait.
  ~SteppedExecutor() override;

  /// Runs one task, or lets one runner whose wait has ended go on. Returns false when there is neither.
  bool step();
  /// Steps until nothing is left to do now; returns how many steps it took.
  /// Precondition: the tested code comes to rest within `most` steps (aborts with a message otherwise).
  std::size_t run(std::size_t most = 10'000'000);
  /// Moves the clock, then runs what became due.
  void advance(base::Duration by);
  /// Moves the clock to the next timer and runs. Returns false when there is no timer.
  bool advance_to_next_timer();

  void post(base::Task task) override;
  void post_at(base::TimePoint when, base::Task task) override;
  /// As post_at: under this executor every task runs on time.
  void keep_time(base::TimePoint when, base::Task task) override { post_at(when, std::move(task)); }
  const base::Clock& clock() const noexcept override { return clock_; }
  bool inside_reading_wait() const noexcept override { return false; }

  void watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) override;
  void rearm(const Pollable& pollable, std::uint32_t events) override;
  void unwatch(const Pollable& pollable) override;
  void flush_later(std::shared_ptr<Flushable> flushable, FlushBy) override { flushable->flush(); }

 protected:
  Wait* make_wait(std::byte* room) override;

 private:
  struct Runner;
  class SteppedWait;
  struct Timer {
    base::TimePoint when;
    std::uint64_t order;
    base::Task task;
  };

  static Runner*& this_runner() noexcept;
  void take_due_timers();
  void take_events();
  void hand_baton_to(Runner& runner);
  void run_loop(Runner& runner);
  bool may_go_on(const SteppedWait& wait) const;

  base::ManualClock clock_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::condition_variable driver_;
  Runner* baton_ = nullptr;  // null = the test's thread
  bool stopping_ = false;
  std::unique_ptr<PollSet> sockets_;  // made with the first one
  std::deque<base::Task> tasks_;
  std::vector<Timer> timers_;
  std::uint64_t timer_order_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Runner*> idle_;
  std::vector<SteppedWait*> blocked_;
};

}  // namespace caftan::transport
