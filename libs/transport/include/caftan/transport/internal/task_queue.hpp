/// `TaskQueue`: the tasks of an executor that wait for a runner. Tasks of due timers go ahead of the rest, so that a
/// deadline does not wait for the work that it limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "caftan/base/internal/fifo.hpp"
#include "caftan/base/task.hpp"

namespace caftan::transport {

/// Threads: one lock of the executor serializes all methods.
class TaskQueue {
 public:
  void push(base::Task&& task) { queue_.push_back(std::move(task)); }
  void push_due(base::Task&& task) { due_.push_back(std::move(task)); }
  std::size_t size() const noexcept { return due_.size() + queue_.size(); }
  /// Returns how many tasks were taken, in all.
  std::uint64_t begun() const noexcept { return begun_; }
  /// Precondition: not empty.
  base::Task take() {
    base::Fifo<base::Task>& from = due_.empty() ? queue_ : due_;
    base::Task task = std::move(from.front());
    from.pop_front();
    ++begun_;
    return task;
  }
  void clear() {
    due_.clear();
    queue_.clear();
  }

 private:
  base::Fifo<base::Task> due_;
  base::Fifo<base::Task> queue_;
  std::uint64_t begun_ = 0;
};

}  // namespace caftan::transport
