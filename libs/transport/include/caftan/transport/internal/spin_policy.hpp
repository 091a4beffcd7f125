/// `SpinPolicy`: whether a thread of this process spins before it sleeps, and for how long. Rules only, for any clock;
/// the threads that spin are in thread_wait.cpp and threaded_executor.cpp. Rules: docs/protocols/spin.md. Start with
/// `SpinWait`.
#pragma once

#include <atomic>
#include <cstdint>

#include "caftan/base/clock.hpp"

namespace caftan::transport {

/// How a process may spin. The default: not at all.
struct SpinOptions {
  static constexpr base::Duration kLongest = std::chrono::microseconds(50);

  unsigned threads = 0;               ///< callers that may spin at the same time; 0: no thread spins
  base::Duration longest = kLongest;  ///< of one spin; shorter waits are worth one
  bool learns = true;                 ///< the limit follows the waits of a thread; false: it is `longest`
  unsigned cores = 1;                 ///< of the machine: with more runnable tasks no thread spins

  bool operator==(const SpinOptions&) const = default;
};

/// What a thread remembers of its waits of one kind.
struct SpinHabit {
  base::Duration limit{0};          ///< of its next spin
  std::uint32_t waits_asleep = 0;   ///< begun with limit 0
  base::TimePoint last_turn{};      ///< of its spin
  std::uint64_t lost_cores = 0;     ///< the kernel's count at its last gap
  base::TimePoint last_gap{};       ///< since when it has lost its core once
  base::TimePoint crowded_until{};  ///< it does not spin before
  base::Duration crowded_for{0};    ///< the last time
};

/// Returns how often the kernel gave the core of the calling thread to another thread before it waited: its involuntary
/// context switches. Interrupts, and programs beside the virtual machine, are none.
std::uint64_t count_lost_cores() noexcept;

/// Threads: any; a SpinHabit is used by its own thread alone.
class SpinPolicy {
 public:
  enum class Waiter : std::uint8_t {
    caller,  ///< waits for a reply
    runner,  ///< is idle
  };
  struct Counts {
    std::uint64_t spins = 0;  ///< begun
    std::uint64_t won = 0;    ///< that found what was waited for
  };

  /// @param lost_cores  the count of the calling thread; tests count themselves
  explicit SpinPolicy(const SpinOptions& options, std::uint64_t (*lost_cores)() noexcept = &count_lost_cores)
      : options_(options), lost_cores_(lost_cores) {}
  SpinPolicy(const SpinPolicy&) = delete;
  SpinPolicy& operator=(const SpinPolicy&) = delete;

  bool is_on() const noexcept { return options_.threads > 0; }
  Counts counts() const noexcept {
    return {spins_.load(std::memory_order_relaxed), won_.load(std::memory_order_relaxed)};
  }

  /// Begins a spin; returns how long it may take, 0 if there is to be none. One that was begun is ended by `end`.
  base::Duration begin(SpinHabit& habit, Waiter waiter, base::TimePoint now) noexcept;
  /// Notes a turn of a spin. Returns false if neighbours, or callers that spin, end it.
  bool go_on(SpinHabit& habit, Waiter waiter, base::TimePoint now) noexcept;
  /// @param won  it has found what was waited for
  void end(Waiter waiter, bool won) noexcept;
  /// Learns how long a wait took, its spin and its sleep together.
  void learn(SpinHabit& habit, base::Duration took) const noexcept;

  /// Returns true if a thread has begun to spin and the machine's tasks are not looked at yet: the calling thread then
  /// has `look` called each kLookPeriod.
  bool wants_look() noexcept;
  /// Takes the number of the machine's runnable tasks without the one that looks; 0 if it is not known. Returns whether
  /// to look again: a thread has spun since the last look.
  bool look(std::uint32_t runnable, base::TimePoint now) noexcept;
  static constexpr base::Duration kLookPeriod = std::chrono::milliseconds(10);

 private:
  bool take_place(Waiter waiter) noexcept;
  bool is_crowded(base::TimePoint now) const noexcept {
    return now.time_since_epoch().count() < crowded_until_.load(std::memory_order_relaxed);
  }
  void note_turn(SpinHabit& habit, base::TimePoint now) const noexcept;

  const SpinOptions options_;
  std::uint64_t (*const lost_cores_)() noexcept;
  std::atomic<unsigned> callers_{0};  // that spin
  std::atomic<unsigned> runners_{0};  // that spin: one at most
  std::atomic<base::TimePoint::rep> crowded_until_{0};
  std::atomic<bool> spun_{false};  // since the last look
  std::atomic<bool> is_looking_{false};
  std::uint32_t crowded_looks_ = 0;  // in a row; of the thread that looks
  std::atomic<std::uint64_t> spins_{0};
  std::atomic<std::uint64_t> won_{0};
};

/// One wait of a thread, from when it has found nothing until it has found something: first spins, if the policy
/// says so, then sleeps. Looks at no clock where no thread may spin.
class SpinWait {
 public:
  SpinWait(SpinPolicy& policy, SpinHabit& habit, SpinPolicy::Waiter waiter, const base::Clock& clock)
      : policy_(policy), habit_(habit), waiter_(waiter), clock_(clock) {
    if (!policy.is_on()) return;
    began_ = now_ = clock.now();
    limit_ = policy.begin(habit, waiter, began_);
  }
  /// The wait is over. @see found
  ~SpinWait() {
    if (!policy_.is_on()) return;
    stop();
    policy_.learn(habit_, clock_.now() - began_);
  }
  SpinWait(const SpinWait&) = delete;
  SpinWait& operator=(const SpinWait&) = delete;

  bool spins() const noexcept { return limit_ > base::Duration::zero(); }
  /// Begins a turn of the spin. Returns false if there is none, or if it is over: the thread has to sleep.
  bool go_on() noexcept {
    if (!spins()) return false;
    now_ = clock_.now();
    if (policy_.go_on(habit_, waiter_, now_) && now_ - began_ < limit_) return true;
    stop();
    return false;
  }
  /// Returns when the turn began. Precondition: go_on has returned true.
  base::TimePoint now() const noexcept { return now_; }
  /// Time until now was spent with work, not with looking: it is no gap.
  void worked() noexcept { habit_.last_turn = clock_.now(); }
  /// Ends the spin. @param won  it has found what was waited for
  void stop(bool won = false) noexcept {
    if (!spins()) return;
    limit_ = base::Duration::zero();
    policy_.end(waiter_, won);
  }

 private:
  SpinPolicy& policy_;
  SpinHabit& habit_;
  const SpinPolicy::Waiter waiter_;
  const base::Clock& clock_;
  base::TimePoint began_{};
  base::TimePoint now_{};
  base::Duration limit_{0};
};

}  // namespace caftan::transport
