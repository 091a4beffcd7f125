/// `TellQueue`: the one-way calls that came over one session, from their frames to their beginning: in order, functions
/// one after the other, many in one task. Rules TL-6 to TL-8: docs/protocols/tell.md.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "caftan/base/internal/fifo.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/strand.hpp"

namespace caftan::actors {

class ServedCall;

/// Threads: any, all methods.
class TellQueue : public std::enable_shared_from_this<TellQueue> {
 public:
  explicit TellQueue(base::Executor& executor);

  /// Takes a one-way call, or another call that is to begin behind those of methods before it. It begins on a runner.
  void push(std::shared_ptr<ServedCall> call);
  /// Returns whether one-way calls of methods have not begun, so that later calls of objects have to queue here.
  bool holds_methods() const;

 private:
  struct Item {
    std::shared_ptr<ServedCall> call;
    bool is_confirmed = false;  // its references are (RR-6), or never will be
  };

  void start_locked() CAFTAN_REQUIRES(mutex_);
  void on_confirmed(const ServedCall* call, Result<void> confirmed);
  void run_some();
  std::shared_ptr<ServedCall> take_next();

  base::Executor& executor_;
  // Its turn is that of the function which runs. One that waits gives the turn back, and the next task of this queue
  // takes it.
  const std::shared_ptr<rpc::Strand> strand_;
  mutable base::Mutex mutex_;
  base::Fifo<Item> waiting_ CAFTAN_GUARDED_BY(mutex_);
  std::size_t methods_ CAFTAN_GUARDED_BY(mutex_) = 0;  // one-way calls of methods that have not begun
  bool is_started_ CAFTAN_GUARDED_BY(mutex_) = false;  // a task that has not begun yet will look at waiting_
};

}  // namespace caftan::actors
