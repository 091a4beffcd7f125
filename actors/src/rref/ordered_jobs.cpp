#include "rref/ordered_jobs.hpp"

namespace caftan::actors {

bool OrderedJobs::push(const std::shared_ptr<ValueJob>& job, base::Task&& done) {
  {
    const base::LockGuard lock(mutex_);
    const bool is_first = waiting_.empty();
    if (is_first && !job->keeps_order()) return false;
    waiting_.push_back({job, std::move(done)});
    if (!is_first) return true;
  }
  executor_.post([self = shared_from_this()] { self->object_->strand().run([self] { self->hand_over(); }); });
  return true;
}

/// Runs with the turn of the strand: what the jobs want to do with the object is queued behind.
void OrderedJobs::hand_over() {
  for (;;) {
    Item* next = nullptr;
    {
      const base::LockGuard lock(mutex_);
      next = &waiting_.front();  // stays where it is while others are pushed behind
    }
    next->job->run(object_, std::move(next->done));
    const base::LockGuard lock(mutex_);
    waiting_.pop_front();
    if (waiting_.empty()) return;
  }
}

}  // namespace caftan::actors
