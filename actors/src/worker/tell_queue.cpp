#include "worker/tell_queue.hpp"

#include <utility>

#include "caftan/base/wait_permit.hpp"
#include "worker/served_call.hpp"

namespace caftan::actors {

namespace {

constexpr int kMostInOneTask = 64;  // calls that begin in one task, before others have their turn

}  // namespace

TellQueue::TellQueue(base::Executor& executor)
    : executor_(executor), strand_(std::make_shared<rpc::Strand>(executor)) {}

void TellQueue::push(std::shared_ptr<ServedCall> call) {
  ServedCall& pushed = *call;
  const bool waits = pushed.is_one_way() && pushed.has_references();  // other calls wait for theirs once they begin
  {
    const base::LockGuard lock(mutex_);
    if (pushed.is_one_way() && pushed.has_target()) ++methods_;
    waiting_.push_back({std::move(call), !waits});
    if (!waits) start_locked();
  }
  if (waits) {
    pushed.when_references_are_confirmed([self = shared_from_this(), of = &pushed](Result<void> confirmed) {
      self->on_confirmed(of, std::move(confirmed));
    });
  }
}

bool TellQueue::holds_methods() const {
  const base::LockGuard lock(mutex_);
  return methods_ > 0;
}

/// A task looks at the queue soon. While one has the turn, the next one waits for the turn, so that it goes on where a
/// function waits.
void TellQueue::start_locked() {
  if (std::exchange(is_started_, true)) return;
  executor_.post([self = shared_from_this()] {
    base::RunnerLimit* const limit = base::RunnerLimit::current();
    auto run = [self] { self->strand_->run([self] { self->run_some(); }); };
    // As calls that no other call waits for (CALL-16).
    if (limit && !limit->may_begin(0)) return limit->hold_call(0, base::Task(std::move(run)));
    run();
  });
}

void TellQueue::on_confirmed(const ServedCall* call, Result<void> confirmed) {
  std::shared_ptr<ServedCall> failed;
  {
    const base::LockGuard lock(mutex_);
    for (Item& item : waiting_) {
      if (item.call.get() != call) continue;
      item.is_confirmed = true;
      if (!confirmed) failed = item.call;
    }
    start_locked();
  }
  if (failed) failed->refuse(confirmed.error());
}

void TellQueue::run_some() {
  {
    const base::LockGuard lock(mutex_);
    is_started_ = false;
  }
  base::RunnerLimit* const limit = base::RunnerLimit::current();
  for (int begun = 0; begun < kMostInOneTask; ++begun) {
    if (begun > 0 && limit && !limit->may_begin(0)) break;
    const std::shared_ptr<ServedCall> call = take_next();
    if (!call) return;
    call->begin_in_order();
    if (!call->is_one_way() || !call->has_target()) continue;
    const base::LockGuard lock(mutex_);
    --methods_;
  }
  const base::LockGuard lock(mutex_);
  if (!waiting_.empty() && waiting_.front().is_confirmed) start_locked();
}

/// Returns the next call, null if there is none or its references are not confirmed. If there are more behind it, a
/// task is started that goes on with them if this call waits.
std::shared_ptr<ServedCall> TellQueue::take_next() {
  const base::LockGuard lock(mutex_);
  if (waiting_.empty() || !waiting_.front().is_confirmed) return nullptr;
  std::shared_ptr<ServedCall> call = std::move(waiting_.front().call);
  waiting_.pop_front();
  if (!waiting_.empty() && waiting_.front().is_confirmed) start_locked();
  return call;
}

}  // namespace caftan::actors
