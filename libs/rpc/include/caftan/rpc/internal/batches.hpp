/// `Batches`: the calls of a worker's batched functions that wait, and the runs that answer them. What runs when is
/// decided by `BatchQueue`; rules BT-1 to BT-13: docs/protocols/batching.md.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/batched_call.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/internal/batch_queue.hpp"

namespace caftan::rpc {

/// Returns what is wrong with the limits of a function: texts that name the function and the range, none if nothing is.
std::vector<std::string> wrong_limits(std::string_view function, const BatchLimits& limits);

/// Threads: any, all methods.
class Batches : public std::enable_shared_from_this<Batches> {
 public:
  /// @param caller  the worker; outlives the calls of these methods, and owns this
  explicit Batches(Caller& caller) : caller_(caller) {}

  /// Lets a request wait for its run. Its outcome goes to its completion, exactly once (BT-4).
  void join(std::unique_ptr<BatchedRequest> request);
  /// Changes the max_size of a batched function (BT-13).
  /// Errors: bad_arguments (out of range; nothing has changed then).
  Result<void> set_max_size(const FunctionEntry& function, std::size_t size);
  /// The worker stops: starts runs for all that waits (BT-9).
  void close();

 private:
  /// Requests with equal keys may share a run.
  struct Key {
    const FunctionEntry* function;
    RRefId object;  // of a method
    bool grad_mode;
    auto operator<=>(const Key&) const = default;
  };
  /// Used under mutex_, but for `key` and `object`, which are constant.
  struct Line {
    Line(const Key& line_key, std::weak_ptr<HostedObject> line_object, BatchLimits limits)
        : key(line_key), object(std::move(line_object)), queue(limits) {}
    const Key key;
    const std::weak_ptr<HostedObject> object;  // weak: the waiting requests keep the object
    BatchQueue<std::unique_ptr<BatchedRequest>> queue;
  };
  using LinePtr = std::shared_ptr<Line>;

  BatchLimits limits_of(const FunctionEntry& function) const CAFTAN_REQUIRES(mutex_);
  void follow(const LinePtr& line, const BatchNext& next);
  void on_timer(const LinePtr& line);
  /// Starts a run: posts it to a runner, where it takes the object's turn.
  void start(const LinePtr& line);
  void take_turn(const LinePtr& line);
  void run(const LinePtr& line);
  /// Answers the requests that no caller waits for any more (BT-8). Returns the others.
  BatchedRequests leave_out_unwanted(BatchedRequests&& taken);
  void remove_idle(const LinePtr& line) CAFTAN_REQUIRES(mutex_);

  Caller& caller_;
  base::Mutex mutex_;
  bool closed_ CAFTAN_GUARDED_BY(mutex_) = false;
  std::map<Key, LinePtr> lines_ CAFTAN_GUARDED_BY(mutex_);
  /// Of functions whose max_size is no longer that of the registry.
  std::map<const FunctionEntry*, std::size_t> changed_sizes_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::rpc
