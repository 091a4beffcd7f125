#include "channels/tcp/tcp_kind.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "channels/socket/socket_endpoint.hpp"

namespace caftan::transport {
namespace {

constexpr int kTcpRtoMax = 44;       // TCP_RTO_MAX_MS of linux/tcp.h, from 6.15 on
constexpr int kLongestPause = 1000;  // milliseconds; the kernel accepts no smaller number

/// Returns how an address begins: "tcp:".
std::string_view scheme_of(std::string_view address) { return address.substr(0, address.find(':') + 1); }

std::optional<std::uint16_t> port_of(std::string_view address) {
  const std::string_view text = address.substr(address.rfind(':') + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// @param flags  of getaddrinfo. Errors: io_error.
Result<AddressList> addresses_of(const std::string& address, int flags) {
  const std::size_t colon = address.rfind(':');
  const std::size_t scheme = scheme_of(address).size();
  std::string host = address.substr(scheme, colon - scheme);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); failed != 0) {
    return Error(Errc::io_error, "'" + address + "': " + ::gai_strerror(failed));
  }
  return AddressList(found, &::freeaddrinfo);
}

}  // namespace

Result<void> check_host_port(const std::string& address) {
  if (address.rfind(':') < scheme_of(address).size()) return no_address(address);
  if (port_of(address)) return {};
  return Error(Errc::invalid_config, "'" + address + "': a port is a number from 0 to 65535");
}

Result<SocketAddress> parse_host_port(const std::string& address) {
  const auto found = addresses_of(address, 0);
  if (!found) return found.error();
  SocketAddress out;
  std::memcpy(&out.storage, (*found)->ai_addr, (*found)->ai_addrlen);
  out.size = (*found)->ai_addrlen;
  return out;
}

bool has_host_name(const std::string& address) { return !addresses_of(address, AI_NUMERICHOST); }

Result<std::vector<std::string>> look_up_host(const std::string& address) {
  const auto found = addresses_of(address, 0);
  if (!found) return found.error().with_code(Errc::peer_down);
  std::vector<std::string> addresses;
  for (const addrinfo* at = found->get(); at; at = at->ai_next) {
    std::array<char, NI_MAXHOST> host{};
    if (::getnameinfo(at->ai_addr, at->ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const std::string text = host.data();
    const bool is_v6 = at->ai_family == AF_INET6;
    addresses.push_back(std::string(scheme_of(address)) + (is_v6 ? "[" + text + "]" : text) +
                        address.substr(address.rfind(':')));
  }
  if (addresses.empty()) return Error(Errc::peer_down, "'" + address + "' has no address");
  return addresses;
}

bool has_host_port(const std::string& address) { return port_of(address) != 0; }

bool is_host_beyond_loopback(const std::string& address) {
  if (!check_host_port(address)) return true;  // an address of an unknown form may be reachable from other hosts
  const auto parsed = parse_host_port(address);
  if (!parsed) return true;
  if (parsed->family() == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(parsed->storage);
    return (ntohl(ip.sin_addr.s_addr) >> 24) != 127;
  }
  if (parsed->family() == AF_INET6) {
    return !IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(parsed->storage).sin6_addr);
  }
  return false;
}

/// Sets no buffer sizes: the kernel fits the buffers of a TCP connection to the connection unless they are set.
void prepare_tcp_socket(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // A lost segment is repeated at a steady pace, not at doubled intervals, so that traffic resumes on a repaired
  // connection before the peer is declared dead (SE-6). Where the kernel lacks an option, the connection does without
  // it.
  ::setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &one, sizeof one);
  ::setsockopt(fd, IPPROTO_TCP, kTcpRtoMax, &kLongestPause, sizeof kLongestPause);
}

namespace {

MakeChannel offer(PollingExecutor& executor, const HandshakeIoOptions&, bool, net::Introduction&) {
  return make_sockets(executor, "tcp");
}

constexpr SocketKind kSockets{.name = "tcp",
                              .offer = offer,
                              .parse = parse_host_port,
                              .prepare = prepare_tcp_socket,
                              .takes_tls = true,
                              .reuses_address = true};

}  // namespace

constinit const ChannelKind kTcpKind{.scheme = "tcp:",
                                     .form = "tcp:host:port",
                                     .check_address = check_host_port,
                                     .check_machine = [] { return Result<void>(); },
                                     .machine_note = [] { return std::string(); },
                                     .is_dialable = has_host_port,
                                     .is_beyond_loopback = is_host_beyond_loopback,
                                     .listen = listen_with<kSockets>,
                                     .dial = dial_with<kSockets>,
                                     .has_name = has_host_name,
                                     .look_up = look_up_host};

}  // namespace caftan::transport
