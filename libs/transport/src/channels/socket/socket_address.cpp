#include "channels/socket/socket_address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace caftan::transport {

std::string address_of(int fd, const std::string& asked) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return asked;
  const std::size_t colon = asked.rfind(':');
  if (bound.ss_family == AF_INET) {
    return asked.substr(0, colon + 1) + std::to_string(ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port));
  }
  if (bound.ss_family == AF_INET6) {
    return asked.substr(0, colon + 1) + std::to_string(ntohs(reinterpret_cast<sockaddr_in6&>(bound).sin6_port));
  }
  return asked;
}

std::string place_of_peer(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return {};
  if (peer.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 || credentials.pid <= 0) return {};
    return "process " + std::to_string(credentials.pid);
  }
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&peer), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  return std::string(host) + ":" + port;
}

}  // namespace caftan::transport
