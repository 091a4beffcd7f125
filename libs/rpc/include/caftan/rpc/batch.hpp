/// `Batch<P...>`: the requests that one run of a batched function answers. Each caller calls the function with its own
/// arguments; the worker collects the calls, runs the function once for all of them, and gives each its own result:
///     std::vector<int> choose(const caftan::Batch<at::Tensor>& observations);           // at the callee
///     registry.add_batched<&choose>("choose", {.max_size = 16, .max_wait = 5ms});
///     int action = worker.rpc_sync<&choose>("agent", observation);                      // at each caller
/// Rules BT-1 to BT-12: docs/protocols/batching.md.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "caftan/base/clock.hpp"

namespace caftan {

/// When a batched function runs: as soon as `max_size` requests wait, or `max_wait` after the first of them came.
struct BatchLimits {
  std::size_t max_size = 0;  ///< requests that one run answers at most; 1 to 65536, there is no default
  /// 0 to 1 h; 0: a run begins at once, with the requests that have come while the object was busy.
  base::Duration max_wait{0};
};

namespace rpc {

/// What a batch has of one call: the argument, or a tuple of them where there is not exactly one.
template <class... P>
struct BatchItem {
  /// The arguments.
  using type = std::tuple<P...>;
};
template <class P>
struct BatchItem<P> {
  using type = P;
};

}  // namespace rpc

/// The arguments of the calls in one batch, in the order in which they came; never empty when a function gets it.
/// A batched function takes it by value or const reference, after a `Worker&` if it wants one, and returns one result
/// for each request, in the same order: `std::vector<R>`, where R may be a Result or a Future, or a Result of such a
/// vector; or nothing. Source: none in PyTorch, where batches are collected by hand (functions.async_execution).
template <class... P>
class Batch {
  static_assert(((std::is_object_v<P> && !std::is_const_v<P>)&&...),
                "write the types of a Batch without const and &: Batch<at::Tensor, int>");

 public:
  /// The arguments of one call: P where there is one, else a std::tuple.
  using Request = typename rpc::BatchItem<P...>::type;

  Batch() = default;
  explicit Batch(std::vector<Request> requests) : requests_(std::move(requests)) {}

  /// Returns how many requests there are.
  std::size_t size() const noexcept { return requests_.size(); }
  /// Precondition: index < size().
  typename std::vector<Request>::const_reference operator[](std::size_t index) const { return requests_[index]; }
  /// For loops over the requests.
  auto begin() const noexcept { return requests_.begin(); }
  /// As begin.
  auto end() const noexcept { return requests_.end(); }
  /// Returns all of them, for example for at::stack.
  const std::vector<Request>& requests() const& noexcept { return requests_; }
  /// Moves them out.
  std::vector<Request> requests() && noexcept { return std::move(requests_); }

 private:
  std::vector<Request> requests_;
};

namespace rpc {

/// Whether T is a Batch.
template <class T>
inline constexpr bool kIsBatch = false;
template <class... P>
inline constexpr bool kIsBatch<Batch<P...>> = true;

}  // namespace rpc
}  // namespace caftan
