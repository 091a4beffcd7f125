/// `OrderedJobs`: jobs for one value whose order counts (docs/protocols/tell.md, TL-7), from the value's actor to the
/// queue of its strand.
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "rref/rref_messages.hpp"

namespace caftan::actors {

/// Jobs enter the strand in the order in which they were pushed. A job that holds the strand's turn hands them over,
/// so none of them runs inside of `ValueJob::run`.
/// Threads: any, all methods.
class OrderedJobs : public std::enable_shared_from_this<OrderedJobs> {
 public:
  OrderedJobs(base::Executor& executor, std::shared_ptr<rpc::HostedObject> object)
      : executor_(executor), object_(std::move(object)) {}

  /// Takes a job if its own order counts, or if others wait here, behind which it has to be. Returns whether it did.
  bool push(const std::shared_ptr<ValueJob>& job, base::Task&& done);

 private:
  struct Item {
    std::shared_ptr<ValueJob> job;
    base::Task done;
  };
  void hand_over();

  base::Executor& executor_;
  const std::shared_ptr<rpc::HostedObject> object_;
  base::Mutex mutex_;
  // The first one is being handed over, or is next.
  std::deque<Item> waiting_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
