/// `LifeWatch`: shows the peer of a session that this side lives, and judges whether the peer does. It works on the
/// thread that keeps time, so both go on however long all runners compute. Rules: docs/protocols/session.md, SE-6 to
/// SE-9, SE-30 and SE-31.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "caftan/base/internal/liveness.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/transport/poller.hpp"

namespace caftan::transport {

/// Threads: any, all methods but `start`.
class LifeWatch {
 public:
  /// @param options  none: the peer cannot fall silent alone, and nothing is watched
  LifeWatch(PollingExecutor& executor, Channel& channel, const std::optional<LivenessOptions>& options,
            const std::string& peer);
  LifeWatch(const LifeWatch&) = delete;
  LifeWatch& operator=(const LifeWatch&) = delete;

  /// The functions that the watch calls. Threads: the one that keeps time; must not block.
  struct Events {
    std::function<void()> show_life;  ///< bytes are to go out
    /// The peer was silent for too long; called once, and after it no function of these is called.
    std::function<void(const Error&)> on_dead;
  };
  /// Begins to watch. @param self  this object; its owner keeps the session
  void start(std::weak_ptr<LifeWatch> self, Events events);
  /// Ends the watch. A call of one of the functions that has begun may still be running.
  void stop() noexcept { stopped_.store(true, std::memory_order_release); }

  // Bytes are only counted here: neither takes a lock or the time. The next look at the counts finds them.
  void on_bytes_in(std::size_t count) noexcept { bytes_in_.fetch_add(count, std::memory_order_relaxed); }
  void on_bytes_out(std::size_t count) noexcept { bytes_out_.fetch_add(count, std::memory_order_relaxed); }
  /// A pong leaves. It postpones the next ping from this moment on: of two idle sides only one sends pings.
  void on_pong_out() noexcept;

 private:
  void look();
  bool note_counts(base::TimePoint now) CAFTAN_REQUIRES(mutex_);

  PollingExecutor& executor_;
  Channel& channel_;
  const bool watches_;                  // false: the peer cannot fall silent alone
  const base::Duration active_period_;  // the longest time between two looks while more goes out than signs of life
  std::weak_ptr<LifeWatch> self_;
  Events events_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> bytes_in_{0};
  std::atomic<std::uint64_t> bytes_out_{0};
  base::Mutex mutex_;
  // When the counts were looked at last, and what they were.
  base::TimePoint looked_ CAFTAN_GUARDED_BY(mutex_);
  std::uint64_t seen_in_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t seen_out_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t seen_beats_ CAFTAN_GUARDED_BY(mutex_) = 0;      // of the peer's channel
  std::optional<Liveness> liveness_ CAFTAN_GUARDED_BY(mutex_);  // there if watches_
};

}  // namespace caftan::transport
