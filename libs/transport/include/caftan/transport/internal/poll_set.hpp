/// `PollSet`: the one epoll of an executor. It owns the Pollables that are watched, and wakes threads that wait in it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/transport/poller.hpp"

struct epoll_event;

namespace caftan::transport {

/// Threads: any, all methods.
class PollSet {
 public:
  PollSet();
  ~PollSet();
  PollSet(const PollSet&) = delete;
  PollSet& operator=(const PollSet&) = delete;

  void watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events);
  void rearm(const Pollable& pollable, std::uint32_t events);
  void unwatch(const Pollable& pollable);

  /// Ends the wait of one thread, or the next wait if no thread waits.
  void wake() noexcept;
  /// Waits for one event; returns as epoll_wait does. @param timeout  milliseconds, -1 = for ever
  int wait(epoll_event& event, int timeout);
  /// As wait, for `period` (less than a second), or for a millisecond on kernels before 5.11.
  int wait_for(epoll_event& event, base::Duration period);
  static bool is_wake(const epoll_event& event) noexcept;
  /// Returns the pollable that the event is about; null if it is no longer watched.
  std::shared_ptr<Pollable> find(const epoll_event& event);

 private:
  int epoll_ = -1;
  int wake_fd_ = -1;
  base::Mutex mutex_;
  std::vector<std::shared_ptr<Pollable>> slots_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_slots_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::transport
