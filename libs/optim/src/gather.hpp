/// Waiting for several calls without a thread.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/rpc/future.hpp"

namespace caftan::optim {

/// Calls `done(outcomes)`, in the order of `futures`, once all have ended; in the thread that ends the last one.
/// Precondition: at least one future.
template <class T, class F>
void gather(std::vector<Future<T>> futures, F done) {
  struct Open {
    Open(std::size_t count, F then) : outcomes(count, Result<T>(Error())), left(count), done(std::move(then)) {}
    std::vector<Result<T>> outcomes;
    std::atomic<std::size_t> left;
    F done;
  };
  auto open = std::make_shared<Open>(futures.size(), std::move(done));
  for (std::size_t i = 0; i < futures.size(); ++i) {
    std::move(futures[i])
        .then([open, i](Result<T> outcome) {
          open->outcomes[i] = std::move(outcome);
          if (open->left.fetch_sub(1) == 1) open->done(std::move(open->outcomes));
        })
        .forget();
  }
}

}  // namespace caftan::optim
