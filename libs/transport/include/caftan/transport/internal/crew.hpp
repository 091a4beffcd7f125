/// `Crew`: how many threads of an executor run, wait and are parked, whether one more may wait, and which calls are
/// held back so that calls for which others wait begin first. Rules only: a Crew starts and wakes no thread.
/// docs/architecture.md, "Runners"; docs/protocols/call.md, CALL-16.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "caftan/base/error.hpp"
#include "caftan/base/task.hpp"

namespace caftan::transport {

/// Threads: one lock of the executor serializes all methods, except where a method says otherwise.
class Crew {
 public:
  /// @param runners  threads that are to be there for work at the same time
  /// @param max_threads  the most threads, one of which always stays free
  Crew(unsigned runners, unsigned max_threads) : runners_(runners), max_threads_(max_threads) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void thread_added() noexcept;

  // `begin_idle`: a runner begins to wait for work; it is idle until `end_idle`.
  void begin_idle() noexcept { ++idle_; }
  void end_idle() noexcept { --idle_; }
  bool has_idle() const noexcept { return idle_ > 0; }
  /// Returns whether as many threads wait for work as are wanted: one more can be parked.
  bool has_enough_idle() const noexcept { return idle_ >= runners_; }

  // A runner that is not needed for now is parked.
  void park() noexcept;
  bool may_unpark() const noexcept { return unpark_ > 0; }
  /// A parked thread goes on, also without may_unpark: the executor ends.
  void unparked() noexcept;

  // A runner waits inside its task: it is blocked.
  void enter_blocked() noexcept;
  void leave_blocked() noexcept;
  /// What replaces a runner that is blocked. Without a replacement no runner might be left to read sockets or to run
  /// tasks.
  enum class Replacement : std::uint8_t {
    none,         ///< enough threads run, or no more are allowed
    parked,       ///< a parked thread, which has been counted as one that goes on, and has to be woken
    thread,       ///< a new one
    last_thread,  ///< a new thread, without which no thread would run
  };
  Replacement replace() noexcept;

  // A permit is taken for each wait of user code. Returns whether one more may be taken.
  bool has_permit() const noexcept { return permits_ + 1 < max_threads_; }
  /// Returns whether no thread would stay free if one more began to wait.
  bool needs_thread_for_wait() const noexcept { return permits_ + 1 >= threads_; }
  void begin_wait() noexcept;
  void end_wait() noexcept;
  /// Returns why no permit was given.
  Error too_many_wait() const;

  // Calls that are held back (CALL-16).
  /// Returns whether a call of that depth may begin for certain; if not, `may_begin` decides. Threads: any.
  bool may_begin_unasked(unsigned depth) const noexcept;
  /// As may_begin_unasked, for a thread that runs.
  bool may_begin(unsigned depth) const noexcept;
  void hold(unsigned depth, base::Task&& call);
  /// Returns whether the calling thread may take a call that is held back.
  bool may_take_held() const noexcept { return may_take_held(permits_ + running_ - idle_ - 1); }
  /// Returns whether an idle runner has to be woken for a call that was held back and may begin now.
  bool may_wake_for_held() const noexcept { return idle_ > 0 && may_take_held(permits_ + running_ - idle_); }
  /// Precondition: may_take_held.
  base::Task take_held();
  void drop_held() { held_.clear(); }

 private:
  unsigned most_engaged(unsigned depth) const noexcept;
  bool may_take_held(unsigned others) const noexcept;
  void publish() noexcept;

  const unsigned runners_;
  const unsigned max_threads_;
  unsigned threads_ = 0;
  unsigned running_ = 0;  // threads that neither wait in a call nor are parked
  unsigned idle_ = 0;     // of those
  unsigned parked_ = 0;
  unsigned unpark_ = 0;   // how many of the parked threads may leave their parking place
  unsigned permits_ = 0;  // waits of user code that are under way
  std::map<unsigned, std::deque<base::Task>, std::greater<>> held_;  // calls that have not begun, by depth

  /// The counts that are read before each call begins; written seldom, and under the lock.
  struct alignas(64) {
    std::atomic<unsigned> engaged{0};  // running_ + permits_
    std::atomic<bool> holds{false};    // held_ is not empty
  } seen_;
};

}  // namespace caftan::transport
