/// Calls of batched functions: how one is decoded and waits, how one run answers several. What users write: batch.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "caftan/rpc/batch.hpp"
#include "caftan/rpc/invocation.hpp"

namespace caftan::rpc {

/// One call of a batched function, decoded, until it is answered.
struct BatchedRequest {
  explicit BatchedRequest(Invocation&& call) : in(std::move(call)) {}
  virtual ~BatchedRequest() = default;
  BatchedRequest(const BatchedRequest&) = delete;
  BatchedRequest& operator=(const BatchedRequest&) = delete;

  Invocation in;
};
/// The requests of one run, in the order in which they came.
using BatchedRequests = std::vector<std::unique_ptr<BatchedRequest>>;

/// Puts the request into the Batches that its Invocation names, where it waits for its run.
void join_batch(std::unique_ptr<BatchedRequest> request);

/// Returns the error for the callers of a run that returned another number of results than it had requests (BT-5).
Error wrong_number_of_results(std::string_view function, std::size_t requests, std::size_t results);

namespace detail {

template <class Tuple>
struct DecodedRequest final : BatchedRequest {
  using BatchedRequest::BatchedRequest;
  Tuple arguments;
};

template <class... P>
Batch<P...> take_arguments(TypeList<P...>, BatchedRequests& requests) {
  std::vector<typename Batch<P...>::Request> all;
  all.reserve(requests.size());
  for (const auto& request : requests) {
    auto& arguments = static_cast<DecodedRequest<std::tuple<P...>>&>(*request).arguments;
    if constexpr (sizeof...(P) == 1) {
      all.push_back(std::move(std::get<0>(arguments)));
    } else {
      all.push_back(std::move(arguments));
    }
  }
  return Batch<P...>(std::move(all));
}

/// Calls `function(supplied..., batch)`.
template <class... S, class B, class F>
decltype(auto) call_with_batch(TypeList<S...>, [[maybe_unused]] Invocation& in, B&& batch, F& function) {
  return function(supply<S>(in)..., std::forward<B>(batch));
}

template <class E, class Allocator>
void answer_batch(Caller& caller, BatchedRequests& requests, Result<std::vector<E, Allocator>> results) {
  if (results && results->size() != requests.size()) {
    results = wrong_number_of_results(requests.front()->in.name(), requests.size(), results->size());
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Invocation& in = requests[i]->in;
    if (!results) {
      in.completion.fail(results.error().at(caller.name()));
    } else if constexpr (kIsResult<E>) {
      complete(caller, in, std::move((*results)[i]));
    } else {
      E one = std::move((*results)[i]);
      complete(caller, in, Result<E>(std::move(one)));
    }
  }
}
inline void answer_batch(Caller& caller, BatchedRequests& requests, const Result<void>& done) {
  for (const auto& request : requests) complete(caller, request->in, Result<void>(done));
}

}  // namespace detail

/// Decodes the arguments of one call, which then waits for its run.
template <class Split>
void invoke_later(Invocation& in) {
  auto request = std::make_unique<detail::DecodedRequest<typename Split::WireTuple>>(std::move(in));
  Invocation& call = request->in;
  const Result<void> decoded = unpack_arguments(call.payload, call.payload.body, call.name(), request->arguments);
  call.payload.drop();
  if (!decoded) return call.completion.fail(decoded.error().at(call.caller->name()));
  join_batch(std::move(request));
}

/// Runs a batched function once, and answers all `requests`. Precondition: there is one.
/// @tparam Types  CallTypes of the function
template <class Types, class F>
void invoke_batch(Caller& caller, BatchedRequests& requests, F function) {
  using Split = typename Types::Split;
  Invocation& first = requests.front()->in;
  detail::answer_batch(caller, requests, run_user_code(caller.name(), first.name(), [&]() -> decltype(auto) {
                         return detail::call_with_batch(typename Split::SuppliedTypes{}, first,
                                                        detail::take_arguments(typename Split::Wire{}, requests),
                                                        function);
                       }));
}

}  // namespace caftan::rpc
