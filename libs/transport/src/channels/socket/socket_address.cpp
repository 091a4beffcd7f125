#include "channels/socket/socket_address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "caftan/transport/internal/endpoint.hpp"

namespace caftan::transport {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTcp = "tcp:";
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

std::optional<std::uint16_t> port_of(std::string_view address) {
  const std::string_view text = address.substr(address.rfind(':') + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

Result<void> check_address(const std::string& address) {
  const auto invalid = [&](const std::string& why) { return Error(Errc::invalid_config, "'" + address + "'" + why); };
  if (address.starts_with(kUnix)) {
    const std::size_t length = address.size() - kUnix.size();
    if (length >= 1 && length <= kLongestPath) return {};
    return invalid(": the path of a Unix socket has 1 to " + std::to_string(kLongestPath) + " bytes");
  }
  if (!address.starts_with(kTcp) || address.rfind(':') < kTcp.size()) {
    return invalid(" is no address: use unix:/path or tcp:host:port");
  }
  if (!port_of(address)) return invalid(": a port is a number from 0 to 65535");
  return {};
}

bool is_dialable(const std::string& address) {
  return !address.empty() && (address.starts_with(kUnix) || port_of(address) != 0);
}

Result<SocketAddress> parse_address(const std::string& address) {
  if (auto fits = check_address(address); !fits) return fits.error();
  SocketAddress out;
  if (address.starts_with(kUnix)) {
    out.path = address.substr(kUnix.size());
    auto& unix_address = reinterpret_cast<sockaddr_un&>(out.storage);
    unix_address.sun_family = AF_UNIX;
    std::memcpy(unix_address.sun_path, out.path.data(), out.path.size());
    out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + out.path.size() + 1);
    return out;
  }
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(kTcp.size(), colon - kTcp.size());
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

bool is_beyond_loopback(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return address.starts_with(kTcp);  // unknown: assume the worst
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
