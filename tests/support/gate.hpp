/// A place where code of a test stops until the test lets it go on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace caftan::test {

class Gate {
 public:
  /// Stops here until `open`. Returns false if that takes so long that the test has failed.
  bool pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    const bool opened = changed_.wait_for(lock, std::chrono::seconds(20), [this] { return open_; });
    --inside_;
    return opened;
  }
  /// Waits until `count` threads are stopped here.
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ >= count; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int inside_ = 0;
};

}  // namespace caftan::test
