/// `ReadClaim`: which thread reads a session, and what the channel is asked to report. One thread at a time reads: a
/// runner, or a thread that waits for a reply and has claimed the session. Rules: docs/architecture.md, "Runners".
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/transport/poller.hpp"

namespace caftan::transport {

/// Threads: any, where a method says nothing else.
class ReadClaim {
 public:
  ReadClaim(PollingExecutor& executor, Channel& channel) : executor_(executor), channel_(channel) {}
  ReadClaim(const ReadClaim&) = delete;
  ReadClaim& operator=(const ReadClaim&) = delete;
  /// Call it once, before any other method. @param self  this object, as a pointer that keeps its session alive
  void set_self(std::weak_ptr<ReadClaim> self) noexcept { self_ = std::move(self); }

  /// The turn to read. It is held from the constructor to the destructor, unless another thread has it.
  class Turn {
   public:
    explicit Turn(ReadClaim& claim) : flag_(claim.reading_), held_(!flag_.exchange(true, std::memory_order_acquire)) {}
    ~Turn() {
      if (held_) flag_.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool held() const noexcept { return held_; }

   private:
    std::atomic<bool>& flag_;
    const bool held_;
  };

  /// Takes the turn for a thread that waits; false if another thread has it. The channel reports no bytes to runners
  /// meanwhile.
  bool claim();
  /// Ends a claim: runners may read again. With `may_defer`, if only replies were read for a while and threads claim
  /// the session often, runners read a moment later, unless a thread claims the session first. Returns whether reading
  /// was deferred so. Threads: the one that has claimed.
  bool release(bool may_defer);
  /// Lets runners read if no thread does.
  void end_deferral();

  /// Asks the channel for its next report.
  void arm();
  /// As arm, after a report was served: it ends a deferral too.
  void rearm();
  /// Returns whether the channel is to report room, because bytes are left to write. Threads that set this: one at a
  /// time; a new value takes effect with the next call of `arm`.
  bool wants_room() const noexcept { return wants_room_.load(std::memory_order_acquire); }
  void set_wants_room(bool wanted) noexcept { wants_room_.store(wanted, std::memory_order_release); }

  /// Begins the spin of an idle runner: the channel need not report bytes until `end_spin`. Returns false if another
  /// thread reads, or may read next without a report.
  bool begin_spin();
  /// Asks for the next report, unless another thread has taken over reading.
  void end_spin();
  /// What an idle runner sees that spins; `unable` once another thread reads.
  Look look_as_runner() const { return reading_.load(std::memory_order_relaxed) ? Look::unable : channel_.look(); }

  // The thread that reads notes here what it has read; only that thread calls these four methods.
  void begin_read() noexcept { work_queued_ = false; }
  void on_reply() noexcept { ++replies_in_row_; }
  /// Notes a frame that is no reply.
  /// @param for_runners  a runner has to handle the frame
  void on_other(bool for_runners) noexcept {
    replies_in_row_ = 0;
    work_queued_ = work_queued_ || for_runners;
  }
  /// Returns whether there was work for runners since `begin_read`.
  bool work_queued() const noexcept { return work_queued_; }

 private:
  enum class Reader : std::uint8_t {
    poller,
    waiter,
    // No thread, for a moment: the thread that has just read its reply is expected to claim again (see `release`).
    none,
  };

  void arm_locked() CAFTAN_REQUIRES(mutex_);
  void read_by_poller_locked() CAFTAN_REQUIRES(mutex_);
  void watch_deferral_locked() CAFTAN_REQUIRES(mutex_);
  void look_at_deferral(std::uint64_t claims_seen);

  PollingExecutor& executor_;
  Channel& channel_;
  std::weak_ptr<ReadClaim> self_;
  std::atomic<bool> reading_{false};
  std::atomic<bool> wants_room_{false};
  bool work_queued_ = false;          // a frame was handed to runners
  std::uint32_t replies_in_row_ = 0;  // replies read since the last frame of another kind

  base::Mutex mutex_;  // also serializes Channel::arm
  Reader reader_ CAFTAN_GUARDED_BY(mutex_) = Reader::poller;
  std::uint64_t claims_ CAFTAN_GUARDED_BY(mutex_) = 0;
  bool deferral_watched_ CAFTAN_GUARDED_BY(mutex_) = false;  // a task that ends the deferral is posted
  bool claimed_seldom_ CAFTAN_GUARDED_BY(mutex_) = false;    // no deferral until a claim comes soon after a release
  base::TimePoint released_ CAFTAN_GUARDED_BY(mutex_){};     // the last release while claimed_seldom_
};

}  // namespace caftan::transport
