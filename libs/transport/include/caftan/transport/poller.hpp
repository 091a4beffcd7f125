/// The interface of an executor that the transport needs beyond what the libraries use: readiness of file descriptors,
/// and coalesced writes.
#pragma once

#include <cstdint>
#include <memory>

#include "caftan/base/executor.hpp"
#include "caftan/transport/internal/shared_memory_budget.hpp"
#include "caftan/wire/internal/block_pool.hpp"

namespace caftan::transport {

/// Something with a file descriptor. One-shot: after `on_ready` nothing is reported until `rearm`; with EPOLLET among
/// the events each edge is reported, also while an earlier report is still served.
class Pollable {
 public:
  virtual ~Pollable() = default;
  /// Returns the descriptor, the same as long as it is watched.
  virtual int fd() const noexcept = 0;
  /// Reads and writes what can be done now. Threads: a runner; never two at the same time unless rearmed meanwhile, or
  /// with EPOLLET.
  virtual void on_ready(std::uint32_t events) = 0;

 private:
  friend class PollSet;
  std::uint64_t key_ = 0;  // place in the PollSet, set by `watch`
};

/// Something with bytes appended but not yet written. Threads: any.
class Flushable {
 public:
  virtual ~Flushable() = default;
  /// Writes the bytes that are held back, as far as the channel takes them. Does not block.
  virtual void flush() = 0;
};

/// What a thread sees that looks for bytes without a system call.
enum class Look : std::uint8_t {
  unable,     ///< a look would be a system call
  nothing,    ///< no bytes
  something,  ///< bytes, or the end of the stream
};

/// A source of frames that a waiting thread reads itself.
class ClaimableSource : public base::ReadableSource {
 public:
  /// Takes over reading; returns false if another thread reads.
  virtual bool claim() = 0;
  /// Returns the descriptor to poll; -1 if there is none, and then the source cannot be claimed.
  virtual int claim_fd() const noexcept = 0;
  /// Prepares a sleep on that descriptor; returns false if there is something to read already. `wake` ends the sleep.
  virtual bool try_sleep() { return true; }
  /// @param readable  the descriptor can be read
  virtual void wake(bool readable) { (void)readable; }
  /// Looks for something to read without a system call. Threads: any.
  virtual Look look() const { return Look::unable; }
  /// The peer need not wake this thread until its next `try_sleep`. Precondition: look() is not `unable`.
  virtual void stay_awake() {}
  /// Reads the bytes that have arrived and resolves replies. Returns false when the source ended or when a frame must
  /// be handled by runners: then the caller ends its claim and goes on waiting without reading.
  virtual bool read_claimed() = 0;
  /// Ends the claim and lets runners read again. With `may_defer` runners may read a moment later, because this thread
  /// is expected to claim the source again first: then returns this source, and the thread calls `end_deferral` before
  /// it waits for anything else. Otherwise returns nothing.
  virtual std::weak_ptr<ClaimableSource> release(bool may_defer) = 0;
  /// Lets runners read now, after a `release` that left reading to this thread.
  virtual void end_deferral() = 0;

  // An idle runner looks for bytes without a claim. Between `begin_spin` and `end_spin` it need not be woken for them.
  /// Returns false if it cannot look, or if another thread reads.
  virtual bool begin_spin() { return false; }
  /// As look, but `unable` once another thread reads.
  virtual Look look_as_runner() const { return Look::unable; }
  /// The runner sleeps, or does something else: it has to be woken again.
  virtual void end_spin() {}
  /// Reads as a runner that was woken does.
  virtual void read_as_runner() {}
};

/// How soon held-back bytes have to leave.
enum class FlushBy {
  queue_end,  ///< when the queue of this runner is empty: at the end of a task
  task_end,   ///< as queue_end, of the last bytes of a task: at once if no other task waits
  soon,       ///< within some 100 us, however long this thread computes
};

/// An executor whose runners also wait for file descriptors. Threads: any, all methods.
class PollingExecutor : public base::Executor {
 public:
  /// As post_at, but on the thread that keeps time: so it is on time however long all runners compute. `task` must not
  /// block, and must not run user code.
  virtual void keep_time(base::TimePoint when, base::Task task) = 0;
  /// Starts to report `events` (EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLET) of `pollable`.
  virtual void watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) = 0;
  /// Reports `events` of a watched pollable again.
  virtual void rearm(const Pollable& pollable, std::uint32_t events) = 0;
  /// Stops reporting. A call of `on_ready` that has begun may still be running afterwards.
  virtual void unwatch(const Pollable& pollable) = 0;
  /// Returns whether this thread runs a task behind which no other one waits: what it holds back leaves next in any
  /// case. Not where a task may send more.
  virtual bool runs_last_task() const noexcept { return false; }
  /// Calls `flush` before this thread sleeps or waits, and no later than `by`; at once where nothing coalesces.
  virtual void flush_later(std::shared_ptr<Flushable> flushable, FlushBy by) = 0;

  /// Notes that this thread has read a source: if it is a runner, it may spin on that source when it is idle.
  virtual void has_read(const std::weak_ptr<ClaimableSource>& source) { (void)source; }

  /// Returns the cache of memory blocks for what the Workers of this executor receive: one for all of them.
  wire::BlockPool& pool() noexcept { return pool_; }
  /// Returns how much memory the channels of these Workers share with other processes.
  SharedMemoryBudget& shared_memory() noexcept { return shared_memory_; }

 private:
  wire::BlockPool pool_;
  SharedMemoryBudget shared_memory_;
};

}  // namespace caftan::transport
