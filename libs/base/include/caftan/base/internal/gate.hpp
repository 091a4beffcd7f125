/// `Gate`: counts visits that are under way, can be closed to new ones, and lets its owner wait until no visit is
/// inside. So the owner can end safely while other threads may be about to begin a visit.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"

namespace caftan::base {

/// Threads: any, all methods. The caller of `leave` keeps the gate alive until it has returned.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Enters. Returns false, and stays outside, once the gate is closed. If one thread enters while another closes the
  /// gate and then waits, either the first stays outside or the second waits for it.
  [[nodiscard]] bool enter() noexcept {
    // Counted before closed_ is read: either a caller of `close` that waits afterwards sees this entry, or this
    // function reads that the gate is closed.
    inside_.fetch_add(1);
    if (!closed_.load()) return true;
    leave();
    return false;
  }
  /// Enters as a part of a visit that is inside and leaves later; a closed gate lets it in.
  void enter_as_part() noexcept { inside_.fetch_add(1); }
  /// Leaves; ends a `wait_until_empty` if nothing else is inside.
  void leave() noexcept;

  /// From now on nothing enters.
  void close() noexcept { closed_.store(true); }
  /// Returns whether `close` was called.
  bool is_closed() const noexcept { return closed_.load(); }
  /// Returns how many visits are inside at this moment.
  std::size_t inside() const noexcept { return inside_.load(); }

  /// Waits until nothing is inside, at most until `deadline`. Returns whether that was so at some moment.
  bool wait_until_empty(Executor& executor, TimePoint deadline);

  /// Is inside from its construction to its destruction, unless the gate was closed.
  class Visit {
   public:
    explicit Visit(Gate& gate) noexcept : gate_(gate.enter() ? &gate : nullptr) {}
    ~Visit() {
      if (gate_) gate_->leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    explicit operator bool() const noexcept { return gate_ != nullptr; }

   private:
    Gate* const gate_;
  };

 private:
  std::atomic<std::size_t> inside_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> is_waited_for_{false};  // set before a waiter looks at inside_, so that `leave` needs no lock else
  Mutex mutex_;
  std::vector<WaitPoint*> waiting_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::base
