/// Calls that must arrive.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/future.hpp"

namespace caftan::optim {

/// A call that carries out what is decided (OP-8): the call has no time-out, no deadline and no cancel flag, and where
/// there is no room for the call, it is made again after a millisecond. It ends by the reply or by the end of the
/// connection. Use it only for methods that do not wait: if a method itself answered `overloaded`, it would be
/// called again although it has run.
template <class T>
class DecidedCall : public std::enable_shared_from_this<DecidedCall<T>> {
 public:
  /// @param start  makes the call, with the given options
  using Start = std::function<Future<T>(const CallOptions&)>;
  static Future<T> make(const std::weak_ptr<rpc::Caller>& caller, Start start) {
    const std::shared_ptr<DecidedCall> call(new DecidedCall(caller, std::move(start)));
    Future<T> future = call->promise_.future();
    call->try_once();
    return future;
  }

 private:
  DecidedCall(std::weak_ptr<rpc::Caller> caller, Start start)
      : caller_(std::move(caller)), start_(std::move(start)), promise_(caller_) {}

  void try_once() {
    Ambient ambient;  // of no surrounding call
    const AmbientSwap swap(&ambient);
    start_({.timeout = base::Duration::zero(), .fail_when_full = true})
        .then([self = this->shared_from_this()](Result<T> outcome) { self->on_outcome(std::move(outcome)); })
        .forget();
  }
  void on_outcome(Result<T> outcome) {
    const auto caller = caller_.lock();
    if (outcome || outcome.error().code() != Errc::overloaded || !caller) {
      promise_.set(std::move(outcome));
      return;
    }
    base::Executor& executor = caller->executor();
    executor.post_at(executor.clock().now() + std::chrono::milliseconds(1),
                     [self = this->shared_from_this()] { self->try_once(); });
  }

  const std::weak_ptr<rpc::Caller> caller_;
  const Start start_;
  Promise<T> promise_;
};

}  // namespace caftan::optim
