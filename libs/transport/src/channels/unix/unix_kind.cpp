#include "channels/unix/unix_kind.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "channels/socket/socket_endpoint.hpp"

namespace caftan::transport {
namespace {

constexpr std::string_view kUnixScheme = "unix:";
constexpr int kSocketBuffer = 1 << 20;  // the size that is asked for; the kernel may give less
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

Result<void> check_unix(const std::string& address) { return check_socket_path(kUnixScheme, address); }
Result<SocketAddress> parse_unix(const std::string& address) { return socket_at_path(kUnixScheme, address); }
bool always(const std::string&) { return true; }
bool never(const std::string&) { return false; }

MakeChannel offer_sockets(PollingExecutor& executor, const HandshakeIoOptions&, bool, net::Introduction&) {
  return make_sockets(executor, "unix");
}

constexpr SocketKind kUnixSockets{.name = "unix",
                                  .offer = offer_sockets,
                                  .parse = parse_unix,
                                  .prepare = prepare_unix_socket,
                                  .takes_tls = false,
                                  .reuses_address = false};

}  // namespace

Result<void> check_socket_path(std::string_view scheme, const std::string& address) {
  const std::size_t length = address.size() - scheme.size();
  if (length >= 1 && length <= kLongestPath) return {};
  return Error(Errc::invalid_config,
               "'" + address + "': the path of a Unix socket has 1 to " + std::to_string(kLongestPath) + " bytes");
}

SocketAddress socket_at_path(std::string_view scheme, const std::string& address) {
  SocketAddress out;
  out.path = address.substr(scheme.size());
  auto& unix_address = reinterpret_cast<sockaddr_un&>(out.storage);
  unix_address.sun_family = AF_UNIX;
  std::memcpy(unix_address.sun_path, out.path.data(), out.path.size());
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + out.path.size() + 1);
  return out;
}

void prepare_unix_socket(int fd) {
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
}

constinit const ChannelKind kUnixKind{.scheme = kUnixScheme,
                                      .form = "unix:/path",
                                      .check_address = check_unix,
                                      .check_machine = [] { return Result<void>(); },
                                      .machine_note = [] { return std::string(); },
                                      .is_dialable = always,
                                      .is_beyond_loopback = never,
                                      .listen = listen_with<kUnixSockets>,
                                      .dial = dial_with<kUnixSockets>};

}  // namespace caftan::transport
