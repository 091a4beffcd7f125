#include "channels/unix/unix_kind.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "channels/socket/socket_endpoint.hpp"

namespace caftan::transport {
namespace {

constexpr std::string_view kScheme = "unix:";
constexpr int kSocketBuffer = 1 << 20;  // the size that is asked for; the kernel may give less
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

Result<void> check(const std::string& address) {
  const std::size_t length = address.size() - kScheme.size();
  if (length >= 1 && length <= kLongestPath) return {};
  return Error(Errc::invalid_config,
               "'" + address + "': the path of a Unix socket has 1 to " + std::to_string(kLongestPath) + " bytes");
}

Result<SocketAddress> parse(const std::string& address) {
  SocketAddress out;
  out.path = address.substr(kScheme.size());
  auto& unix_address = reinterpret_cast<sockaddr_un&>(out.storage);
  unix_address.sun_family = AF_UNIX;
  std::memcpy(unix_address.sun_path, out.path.data(), out.path.size());
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + out.path.size() + 1);
  return out;
}

void prepare(int fd) {
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
}

bool always(const std::string&) { return true; }
bool never(const std::string&) { return false; }

constexpr SocketKind kSockets{.name = "unix", .parse = parse, .prepare = prepare, .reuses_address = false};

}  // namespace

constinit const ChannelKind kUnixKind{.scheme = kScheme,
                                      .form = "unix:/path",
                                      .check_address = check,
                                      .is_dialable = always,
                                      .is_beyond_loopback = never,
                                      .listen = listen_with<kSockets>,
                                      .dial = dial_with<kSockets>};

}  // namespace caftan::transport
