/// `Future<T>`: the result of something that is still running, usually a call. `get` waits and throws, `result` waits
/// and returns a `Result`, `then` goes on without waiting. `Promise<T>` is its other end, for asynchronous functions.
/// Several at once: wait.hpp.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "caftan/base/result.hpp"
#include "caftan/rpc/future_state.hpp"
#include "caftan/rpc/user_code.hpp"

namespace caftan {

template <class T>
class Future;

namespace rpc {

/// Whether T is a Future.
template <class T>
inline constexpr bool kIsFuture = false;
template <class T>
inline constexpr bool kIsFuture<Future<T>> = true;
/// Whether T is a Result.
template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

/// The type that a caller gets from a function that returns R: T for Future<T> and Result<T>, else R without reference
/// and const.
template <class R>
struct ValueOfImpl {
  /// The value.
  using type = std::remove_cvref_t<R>;
};
template <class R>
requires(kIsFuture<std::remove_cvref_t<R>> || kIsResult<std::remove_cvref_t<R>>) struct ValueOfImpl<R> {
  using type = typename std::remove_cvref_t<R>::value_type;
};
/// What a caller gets from a function that returns R.
template <class R>
using ValueOf = typename ValueOfImpl<R>::type;

}  // namespace rpc

/// Move-only; the state behind it is one allocation. A dropped future is no error: the call runs on, and an error
/// that was never read is logged once.
/// Threads: one at a time for one Future. Waiting gives the object's turn back (see Strand) and is allowed everywhere
/// but in `brief` functions; runners that wait are replaced.
/// Source: torch.futures.Future. Difference: a continuation gets a Result, not the parent future.
template <class T>
class [[nodiscard]] Future {
 public:
  using value_type = T;
  Future() = default;
  explicit Future(std::shared_ptr<rpc::FutureState<T>> state) : state_(std::move(state)) {}
  Future(Future&&) noexcept = default;
  Future& operator=(Future&& other) noexcept {
    if (this != &other) {
      abandon();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Future() { abandon(); }

  /// Returns whether there is a state. A default-made or moved-from future has none; its result is broken_promise.
  bool valid() const noexcept { return state_ != nullptr; }
  /// Returns whether the result is there. `get` does not wait for it then; inside of a method it may still let a
  /// queued method of its object go first (CALL-7).
  bool ready() const noexcept { return !state_ || state_->ready(); }

  /// Waits and returns the value; may be called again. `std::move(f).get()` moves the value out.
  /// Errors (thrown as RpcException): those of the call; broken_promise (dropped); overloaded (too many runners wait).
  T get() & { return result().value(); }
  T get() && { return std::move(*this).result().value(); }

  /// As get, without throwing.
  Result<T> result() & {
    static_assert(std::is_void_v<T> || std::is_copy_constructible_v<rpc::Stored<T>>,
                  "this value can only be moved out: std::move(future).result()");
    if (!state_) return rpc::no_state();
    observe();
    if (!state_->wait(base::kNever)) return rpc::why_not_waited();
    return state_->outcome();
  }
  Result<T> result() && {
    if (!state_) return rpc::no_state();
    observe();
    if (!state_->wait(base::kNever)) return rpc::why_not_waited();
    const auto state = std::move(state_);
    return std::move(state->outcome());
  }

  /// Waits and returns the error, if there is one; the value stays where it is. Errors: as get.
  Result<void> status() {
    if (!state_) return rpc::no_state();
    observe();
    if (!state_->wait(base::kNever)) return rpc::why_not_waited();
    return outcome_status();
  }

  /// `outcome` does the same as `result`, and `outcome_status` the same as `status`, for a future that is ready: they
  /// never wait and never give the object's turn back.
  /// Precondition: ready().
  Result<T> outcome() & {
    static_assert(std::is_void_v<T> || std::is_copy_constructible_v<rpc::Stored<T>>,
                  "this value can only be moved out: std::move(future).outcome()");
    if (!state_) return rpc::no_state();
    observe();
    return state_->outcome();
  }
  Result<T> outcome() && {
    if (!state_) return rpc::no_state();
    observe();
    const auto state = std::move(state_);
    return std::move(state->outcome());
  }
  /// Returns whether the outcome is a value, or its error, without copying the value. Precondition: as `outcome`.
  Result<void> outcome_status() {
    if (!state_) return rpc::no_state();
    observe();
    const Result<T>& known = state_->outcome();
    return known ? Result<void>() : Result<void>(known.error());
  }

  /// Waits for the result at most `timeout` >= 0, not at all if too many runners wait. Returns whether it is there. A
  /// method may have to wait longer for its turn (CALL-7).
  bool wait_for(base::Duration timeout) { return !state_ || state_->wait_for(timeout); }

  /// Cancels: the result becomes `cancelled` and the peer gets a cancel, unless the result came first.
  /// Returns whether this call decided it. The callee may look at CallInfo::is_cancelled.
  bool cancel() { return state_ && state_->cancel(); }

  /// Runs `continuation(Result<T>)` when the result is there, and returns a future of what it returns (T, void, Result
  /// or Future, which is followed). It runs here when the result is there already: at once, or, inside of another
  /// continuation, after that one (so chains and loops of any length are fine). Else it runs on a runner when the
  /// result comes from a call, and in the thread that sets the Promise when it does not. It always runs on a runner
  /// where that thread reads frames or holds an object's turn. It runs under the Ambient of this call, but holds no
  /// object's turn: state shared with methods goes through the object's strand. It should not block.
  template <class F>
  auto then(F&& continuation) & {
    return attach<false>(std::forward<F>(continuation));
  }
  template <class F>
  auto then(F&& continuation) && {
    return attach<true>(std::forward<F>(continuation));
  }

  /// Drops the future. If the call fails, its error is not logged, either.
  void forget() noexcept { state_.reset(); }

  const std::shared_ptr<rpc::FutureState<T>>& state() const noexcept { return state_; }

 private:
  void observe() noexcept { observed_ = true; }
  void abandon() noexcept {
    if (state_ && !observed_) state_->abandon();
    state_.reset();
  }
  template <bool Move, class F>
  auto attach(F&& continuation);

  std::shared_ptr<rpc::FutureState<T>> state_;
  bool observed_ = false;
};

/// Completes one Future. Move-only; dropped uncompleted it gives `broken_promise`. Threads: any, one at a time.
template <class T>
class Promise {
 public:
  /// @param caller  the worker whose executor waiters use; without one, waiting runners use their own
  explicit Promise(std::weak_ptr<rpc::Caller> caller = {})
      : state_(std::make_shared<rpc::FutureState<T>>(std::move(caller))) {}
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    if (this != &other) {
      drop();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Promise() { drop(); }

  /// Returns the future; call it once, before `set`.
  Future<T> future() { return Future<T>(state_); }
  /// Sets the outcome. Returns false when there was one already (the future was cancelled).
  bool set(Result<T> result) {
    const auto state = std::move(state_);
    return state && state->complete(std::move(result));
  }
  /// Completes with the outcome of `other`, once it is there.
  void follow(Future<T> other) {
    const auto state = other.state();
    other.forget();
    if (!state_) return;
    if (!state) {
      set(rpc::no_state());
    } else if (state->forward(state_->destination())) {
      state_.reset();
    } else {
      state->add_continuation(
          [state, promise = std::move(*this)]() mutable { promise.set(std::move(state->outcome())); });
    }
  }
  /// Returns whether the future was cancelled or set.
  bool is_complete() const { return !state_ || state_->destination()->ready(); }

 private:
  void drop() noexcept {
    if (const auto state = std::move(state_)) {
      state->complete(Result<T>(Error(Errc::broken_promise, "the promise was dropped without a result")));
    }
  }
  std::shared_ptr<rpc::FutureState<T>> state_;
};

/// Returns a future that has its result already.
template <class T>
Future<T> make_ready_future(Result<T> result) {
  auto state = std::make_shared<rpc::FutureState<T>>(std::weak_ptr<rpc::Caller>());
  state->complete(std::move(result));
  return Future<T>(std::move(state));
}

namespace rpc {

/// Completes `promise` with `outcome`; where that is a future, with the outcome of the future, once it is there.
template <class U>
void follow(Promise<U> promise, Result<U> outcome) {
  promise.set(std::move(outcome));
}
template <class U>
void follow(Promise<U> promise, Result<Future<U>> outcome) {
  if (!outcome) {
    promise.set(outcome.error());
  } else {
    promise.follow(*std::move(outcome));
  }
}

/// Runs a continuation with the outcome of its future, and completes `promise` with what the continuation returned or
/// threw.
template <class U, class F, class T>
void run_continuation(Promise<U> promise, F& continuation, Result<T> result) {
  follow(
      std::move(promise),
      run_user_code(
          {}, "continuation", [&]() -> decltype(auto) { return continuation(std::move(result)); }, Errc::user_error));
}

}  // namespace rpc

template <class T>
template <bool Move, class F>
auto Future<T>::attach(F&& continuation) {
  static_assert(
      std::is_invocable_v<F&, Result<T>>,
      "a continuation takes the result, which may be an error: then([](caftan::Result<int> result) {...}) of a "
      "Future<int>");
  using Returned = std::invoke_result_t<F&, Result<T>>;
  using U = rpc::ValueOf<Returned>;
  if (!state_) state_ = make_ready_future<T>(rpc::no_state()).state_;
  observe();
  Promise<U> promise(state_->caller());
  Future<U> child = promise.future();
  auto run = [state = state_, ambient = Ambient::capture(), f = std::forward<F>(continuation),
              promise = std::move(promise)]() mutable {
    AmbientSwap swap(&ambient);
    if constexpr (Move) {
      rpc::run_continuation(std::move(promise), f, std::move(state->outcome()));
    } else {
      static_assert(std::is_void_v<T> || std::is_copy_constructible_v<rpc::Stored<T>>,
                    "this value can only be moved: std::move(future).then(...)");
      rpc::run_continuation(std::move(promise), f, Result<T>(state->outcome()));
    }
  };
  const auto state = Move ? std::move(state_) : state_;
  state->add_continuation(base::Task(std::move(run)));
  return child;
}

}  // namespace caftan
