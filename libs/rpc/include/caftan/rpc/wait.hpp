/// Waiting for several futures: `wait_all` returns their values in order, `wait_all_results` every outcome, `wait_any`
/// returns which is first. Without a thread that waits: collect.hpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "caftan/rpc/future.hpp"

namespace caftan {

namespace rpc {

/// When a wait for several futures ends.
enum class Until {
  all,    ///< all are ready, or one has failed
  every,  ///< all are ready, with values or errors
  first   ///< one is ready
};

/// Waits for the condition `until`, at most for `timeout`. Returns the index of the first future in order that is ready
/// (`first`) or has failed (`all`); states.size() when all are ready (of `all`: without error); nullopt when `timeout`
/// passed first. Null states count as failed.
/// Errors: overloaded (too many runners wait already), would_deadlock (inside a brief function).
Result<std::optional<std::size_t>> wait_several(std::span<FutureCore* const> states, Until until,
                                                std::optional<base::Duration> timeout);

/// Returns the states of the futures, in their order; null for an empty future.
template <class T>
std::vector<FutureCore*> states_of(const std::vector<Future<T>>& futures) {
  std::vector<FutureCore*> states;
  states.reserve(futures.size());
  for (const Future<T>& future : futures) states.push_back(future.state().get());
  return states;
}

/// Returns the error of a wait that its time-out has ended.
/// @param futures  how many futures the wait was for
Error too_late(std::size_t futures);

/// Waits as `try_wait_all` says.
/// Errors: the first error; timeout; overloaded; would_deadlock.
template <class T>
Result<void> wait_for_all(std::vector<Future<T>>& futures, std::optional<base::Duration> timeout) {
  const auto waited = wait_several(states_of(futures), Until::all, timeout);
  if (!waited) return waited.error();
  if (!*waited) return too_late(futures.size());
  return **waited < futures.size() ? futures[**waited].outcome_status() : Result<void>();
}

/// What a wait for all returns: a vector, or nothing where there are no values.
template <class T>
using Values = std::conditional_t<std::is_void_v<T>, void, std::vector<Stored<T>>>;

/// Takes the values of ready futures that have not failed, with `take(future)`.
template <class T, class Take>
Result<Values<T>> values_of(std::vector<Future<T>>& futures, Take take) {
  if constexpr (std::is_void_v<T>) {
    for (Future<T>& future : futures) {
      if (const Result<void> result = future.outcome_status(); !result) return result.error();
    }
    return {};
  } else {
    std::vector<T> values;
    values.reserve(futures.size());
    for (Future<T>& future : futures) {
      // A reply that cannot be decoded is found only here.
      Result<T> result = take(future);
      if (!result) return result.error();
      values.push_back(*std::move(result));
    }
    return values;
  }
}

}  // namespace rpc

/// Waits for all and returns their values in order; ends with the first error as soon as there is one. The futures stay
/// as they are: each gives its own value or error again. Those given as `std::move(futures)` give their values away.
/// @param timeout  >= 0; none = as long as it takes
/// Errors: the first error; timeout; overloaded (too many runners wait already); would_deadlock (inside a brief
/// function). The futures keep running. Threads: as Future. Source: torch.futures.wait_all.
template <class T>
Result<rpc::Values<T>> try_wait_all(std::vector<Future<T>>& futures, std::optional<base::Duration> timeout = {}) {
  if (const Result<void> waited = rpc::wait_for_all(futures, timeout); !waited) return waited.error();
  return rpc::values_of(futures, [](Future<T>& future) { return future.outcome(); });
}
template <class T>
Result<rpc::Values<T>> try_wait_all(std::vector<Future<T>>&& futures, std::optional<base::Duration> timeout = {}) {
  if (const Result<void> waited = rpc::wait_for_all(futures, timeout); !waited) return waited.error();
  return rpc::values_of(futures, [](Future<T>& future) { return std::move(future).outcome(); });
}
/// As try_wait_all, throwing.
template <class T>
auto wait_all(std::vector<Future<T>>& futures, std::optional<base::Duration> timeout = {}) {
  return try_wait_all(futures, timeout).value();
}
template <class T>
auto wait_all(std::vector<Future<T>>&& futures, std::optional<base::Duration> timeout = {}) {
  return try_wait_all(std::move(futures), timeout).value();
}

/// Waits until all futures have ended, with values or errors, and returns every outcome in order. The futures stay as
/// they are. A future that is not ready when the wait ends early has its error as outcome: timeout, overloaded or
/// would_deadlock as in try_wait_all.
template <class T>
std::vector<Result<T>> wait_all_results(std::vector<Future<T>>& futures, std::optional<base::Duration> timeout = {}) {
  const auto waited = rpc::wait_several(rpc::states_of(futures), rpc::Until::every, timeout);
  std::vector<Result<T>> results;
  results.reserve(futures.size());
  for (Future<T>& future : futures) {
    if (future.ready()) {
      results.push_back(future.outcome());
    } else {
      results.push_back(waited ? rpc::too_late(futures.size()) : waited.error());
    }
  }
  return results;
}

/// Waits until one of the futures is ready, with a value or an error, and returns its index; the lowest index if
/// several are ready. nullopt when `timeout` passed first or there are no futures.
/// Errors (thrown): overloaded (too many runners wait already); would_deadlock (inside a brief function).
template <class T>
std::optional<std::size_t> wait_any(const std::vector<Future<T>>& futures, std::optional<base::Duration> timeout = {}) {
  if (futures.empty()) return std::nullopt;
  return rpc::wait_several(rpc::states_of(futures), rpc::Until::first, timeout).value();
}

}  // namespace caftan
