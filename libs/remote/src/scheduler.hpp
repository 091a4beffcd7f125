/// CAF's scheduler slot, filled with the executor: an actor that has messages is one task.
#pragma once

#include <memory>

#include <caf/actor_clock.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"

namespace caftan::remote {

/// Delayed messages over the executor's clock. CAF's request timeouts are not used (they leak in 0.17.6).
class ExecutorClock final : public caf::actor_clock {
 public:
  explicit ExecutorClock(base::Executor& executor) : executor_(executor) {}
  time_point now() const noexcept override;
  void set_ordinary_timeout(time_point when, caf::abstract_actor* self, caf::atom_value type,
                            std::uint64_t id) override;
  void set_multi_timeout(time_point when, caf::abstract_actor* self, caf::atom_value type, std::uint64_t id) override;
  void set_request_timeout(time_point when, caf::abstract_actor* self, caf::message_id id) override;
  void cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) override;
  void cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) override;
  void cancel_timeouts(caf::abstract_actor* self) override;
  void schedule_message(time_point when, caf::strong_actor_ptr receiver, caf::mailbox_element_ptr content) override;
  void schedule_message(time_point when, caf::group target, caf::strong_actor_ptr sender,
                        caf::message content) override;
  void cancel_all() override;

 private:
  void post_timeout(time_point when, caf::abstract_actor* self, caf::message_id id, caf::message content);

  base::Executor& executor_;
};

class Scheduler final : public caf::scheduler::abstract_coordinator {
 public:
  Scheduler(caf::actor_system& system, base::Executor& executor);

  void enqueue(caf::resumable* what) override;
  bool detaches_utility_actors() const override { return false; }
  ExecutorClock& clock() noexcept override { return clock_; }
  void start() override;
  /// Waits until the executor has run every actor that it was given.
  void stop() override { (void)wait_until_idle(base::kNever); }
  /// As stop, at most until `until`; returns whether the executor has run them all.
  bool wait_until_idle(base::TimePoint until);
  /// Returns how many actors the executor has, waiting or running.
  std::size_t in_flight() const;

 private:
  class Unit;
  void run(caf::resumable* what);
  void finished();

  base::Executor& executor_;
  ExecutorClock clock_;
  std::unique_ptr<caf::execution_unit> unit_;

  mutable base::Mutex mutex_;
  std::size_t in_flight_ CAFTAN_GUARDED_BY(mutex_) = 0;
  base::WaitPoint* stopping_ CAFTAN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace caftan::remote
