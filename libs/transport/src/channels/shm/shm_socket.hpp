/// What a shm channel does with its socket beyond a stream of bytes: descriptors, and who is at the other end.
#pragma once

#include <sys/uio.h>

#include <cstddef>

#include "caftan/base/result.hpp"

namespace caftan::transport {

struct SocketRead {
  std::size_t bytes = 0;  ///< of the stream; 0 = nothing there now
  int descriptor = -1;    ///< came with the byte behind these, which is not part of the stream; the caller closes it
};

/// Reads from a Unix-domain socket on which descriptors may come. Errors: peer_down (the end of the stream),
/// malformed_payload (more than one descriptor at once), limit_exceeded (no descriptor is left for the one that came).
Result<SocketRead> read_socket(int fd, const iovec* vectors, int count);

enum class Sent { yes, full, refused };
/// Sends one byte with a descriptor; `full` if the socket takes no byte, or the kernel no descriptor, now.
Sent send_descriptor(int fd, int descriptor);

/// Returns nothing if the process at the other end of a Unix-domain socket has the same user as this one. Errors:
/// unsupported (another user, one of another user namespace, or one that the kernel does not know).
Result<void> check_same_user(int fd);

}  // namespace caftan::transport
