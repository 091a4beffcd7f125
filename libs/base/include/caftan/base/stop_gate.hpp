/// A gate for work that must end before something is destroyed: once closed nobody enters, and the closer waits for
/// those inside.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace caftan {

/// Threads: all methods from any.
class StopGate {
 public:
  /// Holds one place inside; empty if the gate was closed.
  class Pass {
   public:
    Pass() = default;
    explicit Pass(StopGate* gate) noexcept : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_) gate_->leave();
    }
    explicit operator bool() const noexcept { return gate_ != nullptr; }

   private:
    StopGate* gate_ = nullptr;
  };

  /// Returns an empty pass after close(). Never blocks for long.
  [[nodiscard]] Pass enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return Pass();
    ++inside_;
    return Pass(this);
  }

  /// Lets nobody in any more. May be called again.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

  /// Closes, then waits until all passes are gone. The caller must hold none.
  void close_and_wait() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

  std::size_t inside() const {
    const std::lock_guard lock(mutex_);
    return inside_;
  }

 private:
  void leave() {
    const std::lock_guard lock(mutex_);
    // Under the lock: whoever waits may destroy the gate as soon as it sees zero.
    if (--inside_ == 0) empty_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::size_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace caftan
