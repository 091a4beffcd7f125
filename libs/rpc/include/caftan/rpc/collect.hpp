/// One future of many, without a thread that waits: `collect_all` of their values, `collect_all_results` of every
/// outcome. Waiting for them: wait.hpp.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/rpc/wait.hpp"

namespace caftan {

namespace rpc {

/// The outcomes of several futures, as far as they are there. Each slot is written once, by the thread that ends its
/// future.
template <class T>
class Collection {
 public:
  explicit Collection(std::size_t count) : left_(count) {
    outcomes_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) outcomes_.emplace_back(no_state());
  }
  /// Keeps an outcome; returns whether it is the last one.
  bool put(std::size_t at, Result<T> outcome) {
    outcomes_[at] = std::move(outcome);
    return left_.fetch_sub(1) == 1;
  }
  std::vector<Result<T>>& outcomes() noexcept { return outcomes_; }

 private:
  std::vector<Result<T>> outcomes_;
  std::atomic<std::size_t> left_;
};

/// Calls `ended(index, outcome)` for each future when it ends, in the thread that ends it.
template <class T, class Ended>
void for_each_end(std::vector<Future<T>> futures, const Ended& ended) {
  for (std::size_t i = 0; i < futures.size(); ++i) {
    const auto state = futures[i].state();
    futures[i].forget();
    if (!state) {
      ended(i, Result<T>(no_state()));
    } else {
      state->add_continuation([state, i, ended]() mutable { ended(i, std::move(state->outcome())); });
    }
  }
}

/// Returns the worker whose executor a wait for `futures` uses.
template <class T>
std::weak_ptr<Caller> caller_of(const std::vector<Future<T>>& futures) {
  for (const Future<T>& future : futures) {
    if (future.state()) return future.state()->caller();
  }
  return {};
}

}  // namespace rpc

/// Returns a future of all outcomes, in order, which is ready when the last of `futures` is; ready at once without any.
/// Cancelling it does not cancel `futures`. Source: torch.futures.collect_all. Difference: Results, not futures.
template <class T>
Future<std::vector<Result<T>>> collect_all_results(std::vector<Future<T>> futures) {
  using Outcomes = std::vector<Result<T>>;
  if (futures.empty()) return make_ready_future<Outcomes>(Outcomes());
  auto all = std::make_shared<rpc::FutureState<Outcomes>>(rpc::caller_of(futures));
  auto so_far = std::make_shared<rpc::Collection<T>>(futures.size());
  rpc::for_each_end(std::move(futures), [all, so_far](std::size_t at, Result<T> outcome) {
    if (so_far->put(at, std::move(outcome))) all->complete(std::move(so_far->outcomes()));
  });
  return Future<Outcomes>(std::move(all));
}

/// Returns a future of all values, in order (of nothing when T is void), or of the first error as soon as there is one.
/// The others run on then; their errors are not logged.
template <class T>
Future<rpc::Values<T>> collect_all(std::vector<Future<T>> futures) {
  using Values = rpc::Values<T>;
  if (futures.empty()) {
    std::vector<Future<T>> none;
    return make_ready_future<Values>(rpc::values_of(none, [](Future<T>& one) { return std::move(one).result(); }));
  }
  auto all = std::make_shared<rpc::FutureState<Values>>(rpc::caller_of(futures));
  auto so_far = std::make_shared<rpc::Collection<T>>(futures.size());
  rpc::for_each_end(std::move(futures), [all, so_far](std::size_t at, Result<T> outcome) {
    if (!outcome) all->complete(outcome.error());
    if (!so_far->put(at, std::move(outcome))) return;
    // The outcomes are looked through, because `all` does not know whether it has failed once it has forwarded its
    // outcome (FutureState::forward).
    for (const Result<T>& one : so_far->outcomes()) {
      if (!one) return;
    }
    if constexpr (std::is_void_v<T>) {
      all->complete({});
    } else {
      Values values;
      values.reserve(so_far->outcomes().size());
      for (Result<T>& one : so_far->outcomes()) values.push_back(*std::move(one));
      all->complete(std::move(values));
    }
  });
  return Future<Values>(std::move(all));
}

}  // namespace caftan
