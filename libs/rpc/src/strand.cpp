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
  const base::LockGuard lock(mutex_);
  if (!may_start(mode) || returning_ || !queue_.empty()) return false;
  occupy(mode);
  return true;
}

void Strand::enqueue(base::Task job, TurnMode mode) {
  std::vector<Queued> startable;
  {
    const base::LockGuard lock(mutex_);
    queue_.push_back({std::move(job), mode});
    startable = take_startable();  // the turn may have become free since `try_start` looked
  }
  post(std::move(startable));
}

std::vector<Strand::Queued> Strand::take_startable() {
  std::vector<Queued> jobs;
  for (;;) {
    if (returning_ && !is_queue_due()) {
      Returning* const first = returning_;
      if (!may_start(first->mode)) return jobs;
      returning_ = first->next;
      if (!returning_) returning_end_ = &returning_;
      occupy(first->mode);
      if (!queue_.empty()) ++returns_;
      first->outcome = Returning::Outcome::granted;
      first->point->notify();
    } else {
      if (queue_.empty() || !may_start(queue_.front().mode)) return jobs;
      occupy(queue_.front().mode);
      jobs.push_back(std::move(queue_.front()));
      queue_.pop_front();
      returns_ = 0;
    }
  }
}

void Strand::post(std::vector<Queued> jobs) {
  // Each job keeps the strand alive, and the last job may end before `post` returns: so the loop uses no member of
  // `this`.
  base::Executor& executor = executor_;
  for (Queued& queued : jobs) {
    executor.post([this, job = std::move(queued.job), mode = queued.mode]() mutable { execute(job, mode); });
  }
}

void Strand::release(TurnMode mode) {
  std::vector<Queued> startable;
  {
    const base::LockGuard lock(mutex_);
    if (mode == TurnMode::concurrent) {
      --together_;
    } else {
      alone_ = false;
    }
    startable = take_startable();
  }
  post(std::move(startable));
}

bool Strand::take(TurnMode mode, Patience patience) {
  // `taken` may succeed although jobs are queued: then concurrent jobs have the turn, and the oldest queued job waits
  // for their end because it must run alone.
  const auto taken = [&] {
    mutex_.assert_held();
    if (returning_ || is_queue_due() || !may_start(mode)) return false;
    occupy(mode);
    if (!queue_.empty()) ++returns_;
    return true;
  };
  const auto gives_up = [&] {
    mutex_.assert_held();
    return patience == Patience::gives_up && kept_ > 0;
  };
  {
    const base::LockGuard lock(mutex_);
    if (taken()) return true;
    if (gives_up()) return false;
  }
  const NoUserCode reading;
  return executor_.with_wait([&](base::Executor::Wait& wait) {
    Returning self{&wait.point(), mode, patience};
    base::UniqueLock lock(mutex_);
    if (taken()) return true;
    if (gives_up()) return false;
    *returning_end_ = &self;
    returning_end_ = &self.next;
    while (self.outcome == Returning::Outcome::none) {
      lock.unlock();
      wait.wait(base::kNever, nullptr);
      lock.lock();  // also waits until the granting thread no longer uses the wait point
    }
    return self.outcome == Returning::Outcome::granted;
  });
}

bool Strand::is_due_after_return() {
  const base::LockGuard lock(mutex_);
  if (queue_.empty()) return false;
  if (is_queue_due()) return true;
  ++returns_;
  return false;
}

void Strand::keep_while_waiting() {
  const base::LockGuard lock(mutex_);
  ++kept_;
  Returning** at = &returning_;
  while (Returning* const one = *at) {
    if (one->patience == Patience::waits) {
      at = &one->next;
      continue;
    }
    *at = one->next;
    one->outcome = Returning::Outcome::gave_up;
    one->point->notify();
  }
  returning_end_ = at;
}

void Strand::stop_waiting() {
  const base::LockGuard lock(mutex_);
  --kept_;
}

std::shared_ptr<Strand> Strand::run_with_all(std::span<const std::shared_ptr<Strand>> strands,
                                             const std::function<void()>& job) {
  if (strands.empty()) {
    job();
    return nullptr;
  }
  if (!strands.front()->take(TurnMode::serial, Patience::gives_up)) return strands.front();
  std::shared_ptr<Strand> kept;
  const auto with_others = [&] { kept = run_with_all(strands.subspan(1), job); };
  strands.front()->execute(with_others, TurnMode::serial);
  return kept;
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

FirstTurn::FirstTurn(Strand& strand)
    : release_(strand, TurnMode::serial),
      turn_(strand, TurnMode::serial),
      ambient_(Ambient::of_thread()),
      around_(std::exchange(ambient_.turn, &turn_)) {
  const base::LockGuard lock(strand.mutex_);
  strand.occupy(TurnMode::serial);
}

FirstTurn::~FirstTurn() { ambient_.turn = around_; }

Turn* TurnPause::held_turn() noexcept {
  const Ambient* const ambient = Ambient::current();
  return ambient && ambient->turn && ambient->turn->held_ ? ambient->turn : nullptr;
}

bool TurnPause::is_due() {
  Turn* const turn = held_turn();
  return turn && turn->yields() && turn->strand_.is_due_after_return();
}

TurnPause::TurnPause() : turn_(held_turn()) {
  if (!turn_) return;
  if (!turn_->yields()) {
    turn_->strand_.keep_while_waiting();
    return;
  }
  turn_->held_ = false;
  turn_->strand_.release(turn_->mode_);
}

TurnPause::~TurnPause() {
  if (!turn_) return;
  if (!turn_->yields()) {
    turn_->strand_.stop_waiting();
    return;
  }
  turn_->strand_.take(turn_->mode_, Strand::Patience::waits);
  turn_->held_ = true;
}

}  // namespace caftan::rpc
