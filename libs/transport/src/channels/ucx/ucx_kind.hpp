/// UCX beside TCP sockets: "ucx:host:port".
#pragma once

#include "channels/channel_kind.hpp"

namespace caftan::transport {

extern const ChannelKind kUcxKind;

}  // namespace caftan::transport
