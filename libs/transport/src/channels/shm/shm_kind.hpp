/// Rings in shared memory between processes of one user: "shm:/path", where the path is that of a Unix-domain socket.
/// Where there is no shared memory, the connection stays on that socket. Rules: docs/protocols/shm.md.
#pragma once

#include "channels/channel_kind.hpp"

namespace caftan::transport {

extern const ChannelKind kShmKind;

}  // namespace caftan::transport
