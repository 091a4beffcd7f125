#include "scheduler.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/group.hpp>
#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/resumable.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

namespace caftan::remote {

namespace {

// Messages that one actor handles in a row before other actors get their turn.
constexpr std::size_t kMaxThroughput = 64;

/// Takes the place of the actor through which CAF prints (caf::aout), and needs no thread. Nothing in Caftan prints
/// that way.
class SilentPrinter final : public caf::monitorable_actor {
 public:
  explicit SilentPrinter(caf::actor_config& config) : caf::monitorable_actor(config) {}
  void enqueue(caf::mailbox_element_ptr, caf::execution_unit*) override {}
};

}  // namespace

/// Hands each actor that is woken to the executor, whichever thread woke it.
class Scheduler::Unit final : public caf::execution_unit {
 public:
  explicit Unit(Scheduler& scheduler) : caf::execution_unit(&scheduler.system()), scheduler_(scheduler) {}
  void exec_later(caf::resumable* what) override { scheduler_.enqueue(what); }

 private:
  Scheduler& scheduler_;
};

Scheduler::Scheduler(caf::actor_system& system, base::Executor& executor)
    : caf::scheduler::abstract_coordinator(system), executor_(executor), clock_(executor) {}

void Scheduler::start() {
  unit_ = std::make_unique<Unit>(*this);
  caf::actor_config config{unit_.get()};
  caf::actor_system& sys = system();
  utility_actors_[printer_id] =
      caf::make_actor<SilentPrinter, caf::actor>(sys.next_actor_id(), sys.node(), &sys, config);
}

void Scheduler::enqueue(caf::resumable* what) {
  {
    const base::LockGuard lock(mutex_);
    ++in_flight_;
  }
  executor_.post([this, what] { run(what); });
}

void Scheduler::run(caf::resumable* what) {
  const base::Executor::DeferWakeups deferred(executor_);  // actors are short
  switch (what->resume(unit_.get(), kMaxThroughput)) {
    case caf::resumable::resume_later:
      enqueue(what);
      break;
    case caf::resumable::done:
    case caf::resumable::awaiting_message:
      caf::intrusive_ptr_release(what);
      break;
    case caf::resumable::shutdown_execution_unit:
      break;
  }
  finished();
}

void Scheduler::finished() {
  const base::LockGuard lock(mutex_);
  if (--in_flight_ == 0 && stopping_) stopping_->notify();
}

bool Scheduler::wait_until_idle(base::TimePoint until) {
  bool in_time = true;
  while (in_flight() != 0 && in_time) {
    in_time = executor_.with_wait([&](base::Executor::Wait& wait) {
      {
        const base::LockGuard lock(mutex_);
        if (in_flight_ == 0) return true;
        stopping_ = &wait.point();
      }
      const bool notified = wait.wait(until, nullptr);
      const base::LockGuard lock(mutex_);
      stopping_ = nullptr;
      return notified;
    });
  }
  return in_flight() == 0;
}

std::size_t Scheduler::in_flight() const {
  const base::LockGuard lock(mutex_);
  return in_flight_;
}

ExecutorClock::time_point ExecutorClock::now() const noexcept {
  return std::chrono::time_point_cast<duration_type>(executor_.clock().now());
}

void ExecutorClock::post_timeout(time_point when, caf::abstract_actor* self, caf::message_id id, caf::message content) {
  schedule_message(when, caf::actor_cast<caf::strong_actor_ptr>(self),
                   caf::make_mailbox_element(nullptr, id, {}, std::move(content)));
}

// Nothing has to be cancelled: an actor ignores a timeout whose id is not its newest one.
void ExecutorClock::set_ordinary_timeout(time_point when, caf::abstract_actor* self, caf::atom_value type,
                                         std::uint64_t id) {
  post_timeout(when, self, caf::make_message_id(), caf::make_message(caf::timeout_msg{type, id}));
}

void ExecutorClock::set_multi_timeout(time_point when, caf::abstract_actor* self, caf::atom_value type,
                                      std::uint64_t id) {
  post_timeout(when, self, caf::make_message_id(), caf::make_message(caf::timeout_msg{type, id}));
}

void ExecutorClock::set_request_timeout(time_point when, caf::abstract_actor* self, caf::message_id id) {
  post_timeout(when, self, id, caf::make_message(caf::make_error(caf::sec::request_timeout)));
}

void ExecutorClock::cancel_ordinary_timeout(caf::abstract_actor*, caf::atom_value) {}
void ExecutorClock::cancel_request_timeout(caf::abstract_actor*, caf::message_id) {}
void ExecutorClock::cancel_timeouts(caf::abstract_actor*) {}
void ExecutorClock::cancel_all() {}

void ExecutorClock::schedule_message(time_point when, caf::strong_actor_ptr receiver,
                                     caf::mailbox_element_ptr content) {
  struct Delivery {
    caf::weak_actor_ptr receiver;  // weak, because a timer keeps no actor alive
    caf::mailbox_element_ptr content;
    void operator()() {
      if (const auto strong = caf::actor_cast<caf::strong_actor_ptr>(receiver)) {
        strong->enqueue(std::move(content), nullptr);
      }
    }
  };
  executor_.post_at(std::chrono::time_point_cast<base::Duration>(when),
                    Delivery{caf::actor_cast<caf::weak_actor_ptr>(receiver), std::move(content)});
}

void ExecutorClock::schedule_message(time_point when, caf::group target, caf::strong_actor_ptr sender,
                                     caf::message content) {
  executor_.post_at(std::chrono::time_point_cast<base::Duration>(when),
                    [target = std::move(target), sender = std::move(sender), content = std::move(content)]() mutable {
                      if (target)
                        target->eq_impl(caf::make_message_id(), std::move(sender), nullptr, std::move(content));
                    });
}

}  // namespace caftan::remote
