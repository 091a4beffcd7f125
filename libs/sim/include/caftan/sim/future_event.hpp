/// Events whose values are still on their way: what `LpContext::schedule` makes of a future, which it knows by its
/// shape, so that simulations without workers need none of `rpc`. Users write `lp.schedule(delay,
/// agent.rpc_async<...>(...))`.
#pragma once

#include <concepts>
#include <utility>

#include "caftan/base/result.hpp"
#include "caftan/sim/lp_class.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::sim {

/// A future of an event, such as caftan::Future<E>: `result` waits for the value or the error.
template <class F>
concept FutureOfEvent = requires(F future, void (*continuation)(Result<typename F::value_type>)) {
  std::move(future).then(continuation);
  { std::move(future).result() } -> std::same_as<Result<typename F::value_type>>;
};

/// The value of an event that is still on its way. Threads: one at a time.
class FutureEvent {
 public:
  virtual ~FutureEvent() = default;
  /// Waits for the value, and appends it to `to`. Called at most once. Errors: those of the future.
  virtual Result<void> write(wire::Bytes& to) = 0;
};

namespace detail {

template <FutureOfEvent F>
class FutureEventOf final : public FutureEvent {
 public:
  explicit FutureEventOf(F future) : future_(std::move(future)) {}
  Result<void> write(wire::Bytes& to) override {
    const auto value = std::move(future_).result();
    if (!value) return value.error();
    write_event(*value, to);
    return {};
  }

 private:
  F future_;
};

}  // namespace detail
}  // namespace caftan::sim
