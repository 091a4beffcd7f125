#include "pipeline/work_log.hpp"

#include <algorithm>
#include <utility>

namespace caftan::pipeline {

void WorkLog::end_forward(std::uint32_t micro_batch, double begin) {
  const double end = now();
  const base::LockGuard lock(mutex_);
  works_.push_back({.kind = WorkKind::forward, .micro_batch = micro_batch, .begin = begin, .end = end});
  most_held_ = std::max(most_held_, ++held_);
}

void WorkLog::begin_backward(std::uint32_t micro_batch) {
  const double begin = now();
  const base::LockGuard lock(mutex_);
  backward_ = {.kind = WorkKind::backward, .micro_batch = micro_batch, .begin = begin};
  left_ = parameters_;
}

void WorkLog::add_gradient() {
  const double end = now();
  std::uint32_t ended = 0;
  {
    const base::LockGuard lock(mutex_);
    if (left_ == 0 || --left_ > 0) return;
    backward_.end = end;
    works_.push_back(backward_);
    if (held_ > 0) --held_;
    ended = backward_.micro_batch;
  }
  end_pass(ended);
}

void WorkLog::end_pass(std::uint32_t micro_batch) {
  decltype(waiting_)::node_type waiter;
  {
    const base::LockGuard lock(mutex_);
    waiter = waiting_.extract(micro_batch);
  }
  if (waiter) waiter.mapped().set({});
}

Future<void> WorkLog::backward_ended(std::uint32_t micro_batch) {
  Promise<void> promise;
  Future<void> future = promise.future();
  const base::LockGuard lock(mutex_);
  waiting_.insert_or_assign(micro_batch, std::move(promise));
  return future;
}

std::vector<Work> WorkLog::take() {
  const base::LockGuard lock(mutex_);
  return std::exchange(works_, {});
}

std::uint32_t WorkLog::take_most_held() {
  const base::LockGuard lock(mutex_);
  held_ = 0;
  return std::exchange(most_held_, 0);
}

}  // namespace caftan::pipeline
