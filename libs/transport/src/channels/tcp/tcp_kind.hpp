/// TCP sockets: "tcp:host:port".
#pragma once

#include "channels/channel_kind.hpp"

namespace caftan::transport {

extern const ChannelKind kTcpKind;

}  // namespace caftan::transport
