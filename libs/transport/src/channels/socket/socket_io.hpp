/// Reading and writing a connected stream socket without blocking, as Channel::read and Channel::write promise.
#pragma once

#include <sys/uio.h>

#include <cstddef>

#include "caftan/base/result.hpp"

namespace caftan::transport {

/// Writes to a stream socket; 0 = full now. Errors: peer_down.
Result<std::size_t> write_to_socket(int fd, const iovec* vectors, int count);

/// Returns the error with which a stream that was read to its end ends.
Error end_of_stream();

}  // namespace caftan::transport
