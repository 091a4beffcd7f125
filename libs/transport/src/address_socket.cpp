#include "address_socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>

#include "caftan/transport/endpoint.hpp"

namespace caftan::transport {

Result<SocketAddress> parse_address(const std::string& address) {
  SocketAddress out;
  if (address.starts_with("unix:")) {
    out.path = address.substr(5);
    auto& unix_address = reinterpret_cast<sockaddr_un&>(out.storage);
    if (out.path.empty() || out.path.size() >= sizeof unix_address.sun_path) {
      return Error(Errc::invalid_config, "'" + address + "': the path of a Unix socket has 1 to " +
                                             std::to_string(sizeof unix_address.sun_path - 1) + " bytes");
    }
    unix_address.sun_family = AF_UNIX;
    std::memcpy(unix_address.sun_path, out.path.data(), out.path.size());
    out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + out.path.size() + 1);
    return out;
  }
  const std::size_t colon = address.rfind(':');
  if (!address.starts_with("tcp:") || colon < 4) {
    return Error(Errc::invalid_config, "'" + address + "' is no address: use unix:/path or tcp:host:port");
  }
  std::string host = address.substr(4, colon - 4);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); failed != 0) {
    return Error(Errc::io_error, "'" + address + "': " + ::gai_strerror(failed));
  }
  std::memcpy(&out.storage, found->ai_addr, found->ai_addrlen);
  out.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return out;
}

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

bool is_beyond_loopback(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return address.starts_with("tcp:");  // unknown: assume the worst
  if (parsed->family() == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(parsed->storage);
    return (ntohl(ip.sin_addr.s_addr) >> 24) != 127;
  }
  if (parsed->family() == AF_INET6) {
    return !IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(parsed->storage).sin6_addr);
  }
  return false;
}

}  // namespace caftan::transport
