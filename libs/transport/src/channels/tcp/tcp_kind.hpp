/// TCP sockets: "tcp:host:port"; and what other kinds need that reach their peers at a host and a port.
#pragma once

#include <string>
#include <vector>

#include "channels/channel_kind.hpp"
#include "channels/socket/socket_address.hpp"

namespace caftan::transport {

extern const ChannelKind kTcpKind;

/// What ChannelKind and SocketKind promise, for addresses of the form "scheme:host:port".
Result<void> check_host_port(const std::string& address);
Result<SocketAddress> parse_host_port(const std::string& address);
bool has_host_port(const std::string& address);
bool is_host_beyond_loopback(const std::string& address);
bool has_host_name(const std::string& address);
Result<std::vector<std::string>> look_up_host(const std::string& address);
void prepare_tcp_socket(int fd);

}  // namespace caftan::transport
