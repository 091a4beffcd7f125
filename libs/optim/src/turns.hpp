/// `Turns`: runs the jobs of an optimizer one after the other, without a thread, and bounds how long callers wait for a
/// job that cannot be given up any more (OP-8, OP-10).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "caftan/base/clock.hpp"
#include "caftan/base/error.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/caller.hpp"

namespace caftan::optim {

/// Threads: any, all methods.
class Turns : public std::enable_shared_from_this<Turns> {
 public:
  struct Job {
    std::function<void()> begin;        ///< starts the job, which must call `end` once
    std::function<void(Error)> refuse;  ///< called instead, with `timeout`
  };

  /// @param caller  the worker whose executor and clock are used
  /// @param wait  how long a job waits behind one that is overdue; none = for ever
  Turns(std::weak_ptr<rpc::Caller> caller, std::optional<base::Duration> wait)
      : caller_(std::move(caller)), wait_(wait) {}

  /// Begins `job` once all jobs before it have ended, with the Ambient that the calling code has now; on this thread if
  /// they have ended already.
  void take(Job job);
  /// The running job has ended: begins the next one here; while a thread is inside `begin` of a job, that thread begins
  /// the next one afterwards.
  void end();

  /// The running job cannot be given up any more: it ends when the owners reply. If it has not ended by `until`, calls
  /// `overdue`, which completes the job's caller; jobs that wait behind it are refused after `wait`.
  /// @param name  of the job, for the text of those refusals
  void bound(base::TimePoint until, std::string name, std::function<void()> overdue);

 private:
  struct Waiting {
    Job job;
    Ambient ambient;
    base::TimePoint until = base::kNever;
  };
  struct Bound {
    base::TimePoint until;
    std::string name;
    std::function<void()> overdue;  ///< empty once it was called
  };
  void begin_next();
  void look();
  void limit_locked(Waiting& waiting, base::TimePoint now) CAFTAN_REQUIRES(mutex_);
  std::function<void()> set_timer_locked() CAFTAN_REQUIRES(mutex_);

  const std::weak_ptr<rpc::Caller> caller_;
  const std::optional<base::Duration> wait_;

  base::Mutex mutex_;
  std::deque<Waiting> waiting_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<Bound> bound_ CAFTAN_GUARDED_BY(mutex_);            ///< of the running job
  base::TimePoint timer_ CAFTAN_GUARDED_BY(mutex_) = base::kNever;  ///< the time of the earliest timer that is set
  bool running_ CAFTAN_GUARDED_BY(mutex_) = false;
  bool beginning_ CAFTAN_GUARDED_BY(mutex_) = false;  ///< a thread is in begin_next
};

}  // namespace caftan::optim
