#include "caftan/base/continuations.hpp"

#include "caftan/base/executor.hpp"

namespace caftan::base {

thread_local constinit Continuations* Continuations::current_ = nullptr;

void Continuations::run(Task task) {
  if (current_) return current_->tasks_.push_back(std::move(task));
  Continuations here;
  current_ = &here;
  task();
  while (!here.empty()) here.take()();
  current_ = nullptr;
}

Task Continuations::take() {
  constexpr std::size_t kMostTaken = 64;
  Task task = std::move(tasks_[next_++]);
  // Loops of continuations that run side by side may never leave the queue empty, so tasks that were taken are removed
  // in between.
  if (empty() || (next_ >= kMostTaken && 2 * next_ >= tasks_.size())) {
    tasks_.erase(tasks_.begin(), tasks_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
  }
  return task;
}

Continuations::Pause::Pause(Executor* executor) : paused_(std::exchange(current_, nullptr)) {
  if (!paused_) return;
  while (!paused_->empty()) {
    if (executor) {
      executor->post(paused_->take());
    } else {
      run(paused_->take());
    }
  }
}

Continuations::Pause::~Pause() {
  if (paused_) current_ = paused_;
}

}  // namespace caftan::base
