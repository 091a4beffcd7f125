/// Waiting for several futures: `wait_all` returns their values in order, `wait_any` says which is first.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "caftan/rpc/future.hpp"

namespace caftan {

namespace rpc {

/// When a wait for several ends.
enum class Until { all, first };

/// Waits until all are ready or one has failed (`all`), or one is ready (`first`), or `deadline`.
/// Returns the index of the first in order that is ready (`first`) or failed (`all`); states.size() when all are ready
/// without error; nullopt when the deadline came first. Null states count as failed.
/// Errors: overloaded (too many runners wait already).
Result<std::optional<std::size_t>> wait_several(std::span<FutureCore* const> states, Until until,
                                                std::optional<Duration> timeout);

template <class T>
std::vector<FutureCore*> states_of(const std::vector<Future<T>>& futures) {
  std::vector<FutureCore*> states;
  states.reserve(futures.size());
  for (const Future<T>& future : futures) states.push_back(future.state().get());
  return states;
}

}  // namespace rpc

/// Waits for all and moves their values out, in order; ends with the first error as soon as there is one.
/// @param timeout  >= 0; none = as long as it takes
/// Errors: the first error; timeout; overloaded (too many runners wait already). The futures keep running; those not
/// read stay usable. Threads: as Future. Source: torch.futures.wait_all.
template <class T>
auto try_wait_all(std::vector<Future<T>>& futures, std::optional<Duration> timeout = {})
    -> Result<std::conditional_t<std::is_void_v<T>, void, std::vector<rpc::Stored<T>>>> {
  const auto waited = rpc::wait_several(rpc::states_of(futures), rpc::Until::all, timeout);
  if (!waited) return waited.error();
  const auto end = *waited;
  if (!end) return Error(Errc::timeout, "waiting for " + std::to_string(futures.size()) + " futures took too long");
  if (*end < futures.size()) return std::move(futures[*end]).result().error();
  if constexpr (std::is_void_v<T>) {
    for (Future<T>& future : futures) {
      const Result<T> result = std::move(future).result();
      if (!result) return result.error();
    }
    return {};
  } else {
    std::vector<T> values;
    values.reserve(futures.size());
    for (Future<T>& future : futures) {
      Result<T> result = std::move(future).result();
      if (!result) return result.error();
      values.push_back(*std::move(result));
    }
    return values;
  }
}
template <class T>
auto try_wait_all(std::vector<Future<T>>&& futures, std::optional<Duration> timeout = {}) {
  return try_wait_all(futures, timeout);
}
/// As try_wait_all, throwing.
template <class T>
auto wait_all(std::vector<Future<T>>& futures, std::optional<Duration> timeout = {}) {
  return try_wait_all(futures, timeout).value();
}
template <class T>
auto wait_all(std::vector<Future<T>>&& futures, std::optional<Duration> timeout = {}) {
  return try_wait_all(futures, timeout).value();
}

/// Waits until one is ready, with a value or an error, and returns its index; the lowest if several are. nullopt when
/// `timeout` passed first or there are none.
/// Errors (thrown): overloaded (too many runners wait already).
template <class T>
std::optional<std::size_t> wait_any(const std::vector<Future<T>>& futures, std::optional<Duration> timeout = {}) {
  if (futures.empty()) return std::nullopt;
  return rpc::wait_several(rpc::states_of(futures), rpc::Until::first, timeout).value();
}

}  // namespace caftan
