/// Unix-domain sockets: "unix:/path".
#pragma once

#include <string>
#include <string_view>

#include "channels/channel_kind.hpp"
#include "channels/socket/socket_address.hpp"

namespace caftan::transport {

extern const ChannelKind kUnixKind;

// For each kind of channel that begins on a Unix-domain socket; its addresses are `scheme` and a path.

/// Errors: invalid_config (the path is empty or too long).
Result<void> check_socket_path(std::string_view scheme, const std::string& address);
/// Precondition: check_socket_path.
SocketAddress socket_at_path(std::string_view scheme, const std::string& address);
/// Sets the options of a connection's socket.
void prepare_unix_socket(int fd);

}  // namespace caftan::transport
