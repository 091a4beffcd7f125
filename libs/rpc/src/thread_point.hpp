/// A wait point for futures that belong to no worker, waited for by a thread that belongs to no executor.
#pragma once

#include <condition_variable>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"

namespace caftan::rpc {

class ThreadPoint final : public base::WaitPoint {
 public:
  void notify() noexcept override {
    const base::LockGuard lock(mutex_);
    done_ = true;
    changed_.notify_one();
  }
  void wait(base::TimePoint deadline) {
    base::UniqueLock lock(mutex_);
    const auto done = [this] {
      mutex_.assert_held();
      return done_;
    };
    if (deadline == base::kNever) {
      changed_.wait(lock.native(), done);
    } else {
      changed_.wait_until(lock.native(), deadline, done);
    }
  }

 private:
  base::Mutex mutex_;
  std::condition_variable changed_;
  bool done_ CAFTAN_GUARDED_BY(mutex_) = false;
};

}  // namespace caftan::rpc
