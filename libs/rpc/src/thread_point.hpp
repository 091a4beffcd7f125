/// A wait point for futures that belong to no worker, waited for by a thread that belongs to no executor.
#pragma once

#include <condition_variable>
#include <mutex>

#include "caftan/base/executor.hpp"

namespace caftan::rpc {

class ThreadPoint final : public WaitPoint {
 public:
  void notify() noexcept override {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_one();
  }
  void wait(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    const auto done = [this] { return done_; };
    if (deadline == kNever) {
      changed_.wait(lock, done);
    } else {
      changed_.wait_until(lock, deadline, done);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace caftan::rpc
