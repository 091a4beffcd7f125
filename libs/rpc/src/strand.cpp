#include "caftan/rpc/strand.hpp"

namespace caftan::rpc {

bool Strand::may_start(TurnMode mode) const noexcept {
  return !alone_ && (mode == TurnMode::concurrent || together_ == 0);
}

void Strand::occupy(TurnMode mode) noexcept {
  if (mode == TurnMode::concurrent) {
    ++together_;
  } else {
    alone_ = true;
  }
}

bool Strand::try_start(TurnMode mode) {
  const std::lock_guard lock(mutex_);
  if (!may_start(mode) || returning_ || !queue_.empty()) return false;
  occupy(mode);
  return true;
}

void Strand::enqueue(Task job, TurnMode mode) {
  std::vector<Queued> startable;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(job), mode});
    startable = take_startable();  // the turn may have come free since try_start
  }
  post(std::move(startable));
}

std::vector<Strand::Queued> Strand::take_startable() {
  std::vector<Queued> jobs;
  while (!returning_ && !queue_.empty() && may_start(queue_.front().mode)) {
    occupy(queue_.front().mode);
    jobs.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return jobs;
}

void Strand::post(std::vector<Queued> jobs) {
  // Each job keeps the strand alive, and the last may run before this returns: `this` is not touched after it.
  Executor& executor = executor_;
  for (Queued& queued : jobs) {
    executor.post([this, job = std::move(queued.job), mode = queued.mode]() mutable { execute(job, mode); });
  }
}

void Strand::release(TurnMode mode) {
  std::vector<Queued> startable;
  {
    const std::lock_guard lock(mutex_);
    if (mode == TurnMode::concurrent) {
      --together_;
    } else {
      alone_ = false;
    }
    while (returning_ && may_start(returning_->mode)) {
      Returning* const first = returning_;
      returning_ = first->next;
      if (!returning_) returning_end_ = &returning_;
      occupy(first->mode);
      first->granted = true;
      first->point->notify();
    }
    startable = take_startable();
  }
  post(std::move(startable));
}

void Strand::take_again(TurnMode mode) {
  std::unique_lock lock(mutex_);
  if (!returning_ && may_start(mode)) return occupy(mode);
  lock.unlock();
  const FrameReading reading;
  executor_.with_wait([&](Executor::Wait& wait) {
    Returning self{&wait.point(), mode};
    lock.lock();
    if (!returning_ && may_start(mode)) return occupy(mode);
    *returning_end_ = &self;
    returning_end_ = &self.next;
    while (!self.granted) {
      lock.unlock();
      wait.wait(kNever, nullptr);
      lock.lock();  // also lets whoever granted it leave before the wait point goes away
    }
  });
}

std::shared_ptr<Strand> Strand::held_here() noexcept {
  const Ambient* const ambient = Ambient::current();
  if (!ambient || !ambient->turn || !ambient->turn->is_held()) return nullptr;
  return ambient->turn->strand_.weak_from_this().lock();
}

bool Strand::is_held_here() const noexcept {
  const Ambient* const ambient = Ambient::current();
  return ambient && ambient->turn && ambient->turn->is_held() && &ambient->turn->strand() == this;
}

TurnPause::TurnPause() : turn_(Ambient::current() ? Ambient::current()->turn : nullptr) {
  if (turn_ && (!turn_->held_ || !turn_->yields())) turn_ = nullptr;
  if (!turn_) return;
  turn_->held_ = false;
  turn_->strand_.release(turn_->mode_);
}

TurnPause::~TurnPause() {
  if (!turn_) return;
  turn_->strand_.take_again(turn_->mode_);
  turn_->held_ = true;
}

}  // namespace caftan::rpc
