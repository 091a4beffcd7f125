/// One thread at a time reads a session: a runner, or a caller that waits.
#pragma once

#include <atomic>

namespace caftan::transport {

/// Takes the flag that says "somebody reads", and frees it again.
class ReadTurn {
 public:
  explicit ReadTurn(std::atomic<bool>& flag) : flag_(flag), held_(!flag.exchange(true, std::memory_order_acquire)) {}
  ~ReadTurn() {
    if (held_) flag_.store(false, std::memory_order_release);
  }
  ReadTurn(const ReadTurn&) = delete;
  ReadTurn& operator=(const ReadTurn&) = delete;
  bool held() const noexcept { return held_; }

 private:
  std::atomic<bool>& flag_;
  const bool held_;
};

}  // namespace caftan::transport
