/// `OneWayCalls`: the calls without a reply that a session has handed to its peer: their room in the peer's window, and
/// how many have not ended there. Rules: docs/protocols/tell.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "caftan/base/mutex.hpp"
#include "caftan/net/internal/open_tells.hpp"
#include "caftan/transport/internal/frame_writer.hpp"
#include "caftan/transport/internal/open_requests.hpp"

namespace caftan::transport {

/// Threads: any, all methods.
class OneWayCalls {
 public:
  OneWayCalls(FrameWriter& writer, OpenRequests& requests) : writer_(writer), requests_(requests) {}
  OneWayCalls(const OneWayCalls&) = delete;
  OneWayCalls& operator=(const OneWayCalls&) = delete;

  /// Returns what a one-way call of `size` bytes takes of the peer's window: itself, and no room for a reply.
  static std::uint64_t room_for(std::uint64_t size) noexcept { return size; }
  /// Hands a call over that has taken `room`; the room is given back when the call has ended. Calls leave in the order
  /// of this method, several in one system call where earlier ones have not ended.
  /// @param keep  held until then
  /// Returns false once the session ends: nothing was sent then, and the room was given back.
  bool send(wire::OutFrame& frame, std::uint64_t room, std::shared_ptr<const void> keep);
  /// The peer reports that so many have ended. Errors: malformed_payload.
  Result<void> on_ended(std::uint64_t count);
  /// The session has ended. Returns how many calls had not ended; they are forgotten.
  std::size_t end();

 private:
  FrameWriter& writer_;
  OpenRequests& requests_;
  base::Mutex mutex_;
  net::OpenTells open_ CAFTAN_GUARDED_BY(mutex_);
  bool ended_ CAFTAN_GUARDED_BY(mutex_) = false;
};

}  // namespace caftan::transport
