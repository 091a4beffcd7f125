#include "caftan/transport/internal/channel_pair.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "channels/shm/lending.hpp"
#include "channels/shm/shm_channel.hpp"

namespace caftan::transport {
namespace {

using Sockets = std::array<int, 2>;

std::optional<Sockets> connected_over_unix() {
  Sockets fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) != 0) return std::nullopt;
  return fds;
}

std::optional<Sockets> connected_over_tcp() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int dialler = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  int accepted = -1;
  if (::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0 &&
      ::getsockname(listener, generic, &size) == 0 && ::connect(dialler, generic, size) == 0 &&
      ::fcntl(dialler, F_SETFL, O_NONBLOCK) == 0) {
    accepted = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  }
  const int reason = errno;
  ::close(listener);
  const int on = 1;  // as the kind tcp does
  for (const int fd : {dialler, accepted}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (accepted >= 0) return Sockets{dialler, accepted};
  ::close(dialler);
  errno = reason;
  return std::nullopt;
}

}  // namespace

Result<std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>>> make_channel_pair(PollingExecutor& executor,
                                                                                        std::string_view kind) {
  using Pair = std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>>;
  if (kind == "loopback") return make_loopback_pair(executor);
  if (kind != "shm" && kind != "unix" && kind != "tcp") {
    return Error(Errc::invalid_config, "'" + std::string(kind) + "' is no kind of channel: shm, unix, tcp or loopback");
  }
  const auto fds = kind == "tcp" ? connected_over_tcp() : connected_over_unix();
  if (!fds) return Error(Errc::io_error, std::string("a pair of sockets: ") + std::strerror(errno));
  if (kind == "shm") {
    ShmChannelOptions options{.makes_memory = true, .lends = check_reading().has_value()};
    auto dialled = make_shm_channel(executor, (*fds)[0], options, {});
    options.makes_memory = false;
    return Pair(std::move(dialled), make_shm_channel(executor, (*fds)[1], options, {}));
  }
  const char* const name = kind == "tcp" ? "tcp" : "unix";
  return Pair(make_socket_channel(executor, (*fds)[0], name), make_socket_channel(executor, (*fds)[1], name));
}

}  // namespace caftan::transport
