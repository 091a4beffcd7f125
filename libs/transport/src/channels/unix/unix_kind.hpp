/// Unix-domain sockets: "unix:/path".
#pragma once

#include "channels/channel_kind.hpp"

namespace caftan::transport {

extern const ChannelKind kUnixKind;

}  // namespace caftan::transport
