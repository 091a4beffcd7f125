/// The state that a Future and its Promise share: one outcome, set once; threads that wait for it; continuations. Users
/// start with future.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/ambient.hpp"

namespace caftan::rpc {

class Caller;

/// The type that stands for T where a value must exist: void is hosted and sent as std::monostate.
template <class T>
using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// Returns the error of a future that has no state.
Error no_state();
/// Returns why a wait without a deadline ended too early: the executor ended first, too many runners wait already, or
/// the running function is brief.
Error why_not_waited();

/// A waiter for one state. Registered and removed under the state's lock.
class StateWaiter {
 public:
  /// Called at most once, under the state's lock, when the outcome is there.
  virtual void completed(bool failed) noexcept = 0;

 protected:
  ~StateWaiter() = default;

 private:
  friend class FutureCore;
  StateWaiter* next_ = nullptr;
};

/// The part of a future's state that does not depend on the type of its value. Threads: any.
class FutureCore : public std::enable_shared_from_this<FutureCore> {
 public:
  explicit FutureCore(std::weak_ptr<Caller> caller) : caller_(std::move(caller)) {}
  virtual ~FutureCore() = default;
  FutureCore(const FutureCore&) = delete;
  FutureCore& operator=(const FutureCore&) = delete;

  /// Returns whether the outcome is there.
  bool ready() const noexcept { return state_.load(std::memory_order_acquire) != State::open; }
  /// Returns whether the outcome is there and is an error.
  bool failed() const noexcept { return state_.load(std::memory_order_acquire) == State::failed; }

  /// Waits until the future is ready or `deadline` has come; without a WaitPermit not at all. Returns whether it is
  /// ready. Gives the turn of the running object back meanwhile.
  bool wait(base::TimePoint deadline);
  /// As wait, with a time from now on.
  bool wait_for(base::Duration timeout);

  /// Completes with `cancelled`, or asks the worker to. Returns whether this decided the outcome.
  virtual bool cancel() = 0;

  /// Runs `continuation` once the future is ready: on this thread if it is ready already, otherwise on the thread that
  /// completes it (CALL-14). Runs it on a runner instead if that thread reads frames, runs a brief function or holds an
  /// object's turn.
  void add_continuation(base::Task continuation);

  /// Registers a waiter. Returns false, and registers nothing, when the future is ready already.
  bool add_waiter(StateWaiter& waiter);
  /// Removes a waiter; does nothing when it is not registered.
  void remove_waiter(StateWaiter& waiter) noexcept;

  /// The future was dropped unread: an error is reported once, now or when it comes.
  void abandon() noexcept;

  const std::weak_ptr<Caller>& caller() const noexcept { return caller_; }
  /// Returns the executor for a wait on the current thread, null when there is none.
  /// @param keep  gets the worker to which the executor belongs, so that both live during the wait; null if the
  /// executor is that of the Ambient
  base::Executor* executor(std::shared_ptr<Caller>& keep) const;
  /// Returns what a waiting thread may read; null when nothing.
  virtual std::shared_ptr<base::ReadableSource> source() const { return nullptr; }

 protected:
  /// The state begins as `open` and becomes one of the others; `undecoded` later becomes `ready`.
  enum class State : std::uint8_t {
    open,       ///< no outcome yet
    undecoded,  ///< a reply came, which its first reader decodes
    ready,      ///< a value, or the error for which a reply could not be decoded
    failed,     ///< an error
  };
  /// What completing a future leaves to do once mutex_ is released.
  struct FollowUp {
    std::vector<base::Task> continuations;
    bool report = false;  // whether the outcome is an error that no code will read
  };
  /// Marks the outcome as there and wakes waiters. The caller releases mutex_ and calls `follow_up`.
  /// @param state  any but open
  FollowUp mark_ready(State state) CAFTAN_REQUIRES(mutex_);
  bool is_undecoded() const noexcept { return state_.load(std::memory_order_acquire) == State::undecoded; }
  void mark_decoded() noexcept CAFTAN_REQUIRES(mutex_) { state_.store(State::ready, std::memory_order_release); }
  void follow_up(FollowUp next) CAFTAN_EXCLUDES(mutex_);
  bool has_continuations() const noexcept CAFTAN_REQUIRES(mutex_) { return !continuations_.empty(); }
  /// Reports the error of an abandoned state. Called at most once, unlocked.
  virtual void report_unobserved() noexcept {}

  mutable base::Mutex mutex_;

 private:
  void run_continuation(base::Task continuation);

  std::weak_ptr<Caller> caller_;
  std::atomic<State> state_{State::open};  // written under mutex_
  bool abandoned_ CAFTAN_GUARDED_BY(mutex_) = false;
  StateWaiter* waiters_ CAFTAN_GUARDED_BY(mutex_) = nullptr;
  std::vector<base::Task> continuations_ CAFTAN_GUARDED_BY(mutex_);
};

/// The state of a Future<T> with its value.
template <class T>
class FutureState : public FutureCore {
 public:
  using FutureCore::FutureCore;

  /// Sets the outcome, in this state or in the one that `forward` named. Returns false when there was one.
  bool complete(Result<T> result) {
    std::shared_ptr<FutureState> keep;
    for (FutureState* at = this;; at = keep.get()) {
      base::UniqueLock lock(at->mutex_);
      std::shared_ptr<FutureState> next = std::move(at->forward_);
      if (!next) {
        if (at->ready()) return false;
        const State state = result ? State::ready : State::failed;
        at->value_.emplace(std::move(result));
        FollowUp after = at->mark_ready(state);
        lock.unlock();
        at->follow_up(std::move(after));
        return true;
      }
      lock.unlock();
      keep = std::move(next);
    }
  }

  /// Hands the outcome on to `to`, so that a promise that only follows another one costs nothing while it waits
  /// (CALL-14). The future of this state is not looked at any more: this state does not become ready when `complete`
  /// hands its outcome on; an outcome that a later `complete` sets stays here, where no code reads it.
  /// Returns false, and does nothing, where this cannot be done: it is ready, has continuations, or is a call's.
  bool forward(const std::shared_ptr<FutureState>& to) {
    const base::LockGuard lock(mutex_);
    if (!ends_by_complete() || ready() || has_continuations() || to.get() == this) return false;
    forward_ = to;
    return true;
  }

  /// Returns the state in which an outcome set here arrives.
  std::shared_ptr<FutureState> destination() {
    auto at = std::static_pointer_cast<FutureState>(shared_from_this());
    for (;;) {
      std::shared_ptr<FutureState> next;
      {
        const base::LockGuard lock(at->mutex_);
        next = at->forward_;
      }
      if (!next) return at;
      at = std::move(next);
    }
  }

  bool cancel() override { return complete(Result<T>(Error(Errc::cancelled, "cancelled by the caller"))); }

  /// Returns the outcome; decodes it the first time. Precondition: ready().
  Result<T>& outcome() {
    if (is_undecoded()) {
      const base::LockGuard lock(mutex_);
      if (is_undecoded()) {
        value_.emplace(decode());
        mark_decoded();
      }
    }
    return *value_;
  }

 protected:
  /// Whether `complete` alone sets the outcome.
  virtual bool ends_by_complete() const noexcept { return true; }
  /// As mark_ready, for an outcome that `decode` produces later, on the thread that looks at it first.
  FollowUp mark_undecoded() CAFTAN_REQUIRES(mutex_) { return mark_ready(State::undecoded); }
  /// Decodes the outcome. Called at most once, and only after mark_undecoded.
  virtual Result<T> decode() { return no_state(); }

  std::optional<Result<T>> value_;

 private:
  std::shared_ptr<FutureState> forward_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::rpc
