/// `OpenRequests`: the requests of a session that have no reply yet: their room in the peer's window, their deadlines,
/// and their outcomes, one for each request. Rules: docs/protocols/session.md, SE-1 to SE-5 and SE-10 to SE-13.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "caftan/base/ids.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/net/internal/admission.hpp"
#include "caftan/net/internal/request_table.hpp"
#include "caftan/transport/internal/frame_handler.hpp"
#include "caftan/transport/internal/frame_writer.hpp"
#include "caftan/transport/poller.hpp"

namespace caftan::transport {

/// Threads: any, all methods but `set_self`.
class OpenRequests {
 public:
  /// @param peer  its name, for errors @param window  bytes outstanding at once @param most  requests outstanding
  OpenRequests(PollingExecutor& executor, FrameWriter& writer, const std::string& peer, std::uint64_t window,
               std::size_t most)
      : executor_(executor),
        writer_(writer),
        peer_(peer),
        table_(executor.clock().now(), most),
        window_(window, most) {}
  OpenRequests(const OpenRequests&) = delete;
  OpenRequests& operator=(const OpenRequests&) = delete;
  /// Called once, first. @param self  this object; its owner keeps the session
  void set_self(std::weak_ptr<OpenRequests> self) noexcept { self_ = std::move(self); }

  /// Returns what a request of `size` bytes takes of the peer's window: itself and room for its reply.
  static std::uint64_t room_for(std::uint64_t size) noexcept;
  /// Takes room in the window. Errors: overloaded (it is full), peer_down.
  Result<void> try_acquire(std::uint64_t room);
  /// As try_acquire, but waits in line until there is room. Errors: timeout, peer_down. Blocks; not for threads that
  /// poll.
  Result<void> acquire(std::uint64_t room, base::TimePoint deadline);
  void give_back(std::uint64_t room) { window_.release(room); }

  /// Enters a request that has taken `room`, which is given back when the request ends. Errors: overloaded (too many
  /// requests), or why the session takes none; then the room was given back.
  Result<CallId> insert(const std::shared_ptr<ReplySink>& sink, std::uint64_t room, base::TimePoint deadline);
  /// Takes out a request that was not sent, without a call of its sink. Returns false if the request has ended already.
  bool forget(CallId call);
  /// Ends the request with its reply. A late reply is dropped, because its id is unknown by then (WI-8).
  void answer(CallId call, wire::InFrame&& frame);
  /// Sends a cancel to the peer and ends the request with `reason`; has no effect if the request has ended already.
  void cancel(CallId call, Error reason);
  /// Fails all requests that are open, and each one that comes later.
  void end(const Error& reason);
  std::size_t size() const { return table_.size(); }

 private:
  struct Pending {
    std::shared_ptr<ReplySink> sink;
    std::uint64_t room = 0;
  };

  void fail(Pending pending, const Error& error);
  void send_cancel(CallId call);
  void arm_expiry(base::TimePoint deadline);
  void expire();

  PollingExecutor& executor_;
  FrameWriter& writer_;
  const std::string& peer_;
  std::weak_ptr<OpenRequests> self_;
  net::RequestTable<Pending> table_;
  net::AdmissionWindow window_;
  base::Mutex expiry_mutex_;
  // The time of the earliest task that is posted to look at the deadlines; written under expiry_mutex_.
  std::atomic<base::TimePoint> expiry_armed_{base::kNever};
};

}  // namespace caftan::transport
