/// "unix:/path" and "tcp:host:port" as socket addresses.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "caftan/base/result.hpp"

namespace caftan::transport {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string path;  ///< of a Unix socket

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const noexcept { return storage.ss_family; }
  const char* kind() const noexcept { return family() == AF_UNIX ? "unix" : "tcp"; }
};

/// Errors: as check_address; io_error (the host is not known).
Result<SocketAddress> parse_address(const std::string& address);
/// Returns "tcp:host:port" or "unix:path" of a bound socket.
std::string address_of(int fd, const std::string& asked);
/// Returns where the other end of a connected socket is: Channel::peer_place.
std::string place_of_peer(int fd);

}  // namespace caftan::transport
