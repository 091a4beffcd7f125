/// Addresses of sockets in the form that the kernel uses.
#pragma once

#include <sys/socket.h>

#include <string>

namespace caftan::transport {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string path;  ///< of a Unix socket

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const noexcept { return storage.ss_family; }
};

/// Returns `asked`, the address of a bound socket, with the port that the system chose.
std::string address_of(int fd, const std::string& asked);
/// Returns where the other end of a connected socket is: Channel::peer_place.
std::string place_of_peer(int fd);

}  // namespace caftan::transport
