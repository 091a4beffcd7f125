/// What the transport asks of an executor beyond the interface that the libraries see: readiness of file descriptors,
/// and coalesced writes.
#pragma once

#include <cstdint>
#include <memory>

#include "caftan/base/executor.hpp"

namespace caftan::transport {

/// Something with a file descriptor. One-shot: after `on_ready` nothing is reported until `rearm`.
class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual int fd() const noexcept = 0;
  /// Reads and writes what can be done now. Threads: a runner; never two at the same time unless rearmed meanwhile.
  virtual void on_ready(std::uint32_t events) = 0;

 private:
  friend class ThreadedExecutor;
  std::uint64_t key_ = 0;  // slot in the executor, set by watch
};

/// Something with bytes appended but not yet written.
class Flushable {
 public:
  virtual ~Flushable() = default;
  virtual void flush() = 0;
};

/// A source of frames that a waiting thread reads itself.
class ClaimableSource : public ReadableSource {
 public:
  /// Takes over reading; false if somebody else reads.
  virtual bool claim() = 0;
  /// -1: not a file descriptor, cannot be claimed.
  virtual int claim_fd() const noexcept = 0;
  /// Reads what is there and resolves replies. Returns false when the source ended or when what it read must be run by
  /// runners: then the caller releases and only sleeps.
  virtual bool read_claimed() = 0;
  virtual void release() = 0;
};

class PollingExecutor : public Executor {
 public:
  /// Starts to report `events` (EPOLLIN, EPOLLOUT) of `pollable`, once.
  virtual void watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) = 0;
  virtual void rearm(const Pollable& pollable, std::uint32_t events) = 0;
  /// Stops reporting. A call of `on_ready` that has begun may still be running afterwards.
  virtual void unwatch(const Pollable& pollable) = 0;
  /// Calls `flush` before this thread sleeps or blocks, or when its queue is empty; at once where nothing coalesces.
  virtual void flush_later(std::shared_ptr<Flushable> flushable) = 0;
};

}  // namespace caftan::transport
