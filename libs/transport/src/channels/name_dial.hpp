/// Dialling an address that holds a name (SE-39).
#pragma once

#include <string>

#include "channels/channel_kind.hpp"

namespace caftan::transport {

/// Looks the name up, and dials the addresses that it leads to one after the other until a peer answers. A thread of
/// its own waits for the name service, which may take seconds, so no runner does. Errors, beyond those of `dial`:
/// peer_down (the name is unknown as yet, or no address answers; the text has each of them). Threads: any. Does not
/// block.
/// @param kind  one with `look_up`
void dial_by_name(PollingExecutor& executor, const ChannelKind& kind, const std::string& address,
                  net::HandshakeOptions options, const std::string& expected_peer, HandshakeIoOptions io_options,
                  HandshakeDone done);

}  // namespace caftan::transport
