/// A channel over UCX beside a connected socket: UCX carries the stream, the socket what concerns the connection
/// (docs/protocols/ucx.md).
#pragma once

#include <memory>

#include "caftan/net/internal/secret.hpp"
#include "caftan/transport/channel.hpp"

namespace caftan::transport {

struct UcxChannelOptions {
  bool dials = false;  ///< this side has connected the socket: it sends its address of UCX first
  net::Proof key{};    ///< with which both sides prove their addresses (UX-2)
};

/// Checks whether this process has UCX and a device for it, and loads UCX. Errors: unsupported. Threads: any.
Result<void> check_ucx();

/// Makes one end. The channel owns and closes `fd`, which must be non-blocking.
/// Errors: unsupported (no UCX, no device); then `fd` stays the caller's.
Result<std::shared_ptr<Channel>> make_ucx_channel(PollingExecutor& executor, int fd, const UcxChannelOptions& options);

}  // namespace caftan::transport
