#include "launch/control_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "caftan/wire/archive.hpp"

namespace caftan::actors {
namespace {

constexpr std::size_t kLongestPacket = 128 * 1024;

Error system_error(const char* what) { return {Errc::io_error, std::string(what) + ": " + std::strerror(errno)}; }

}  // namespace

ControlSocket::~ControlSocket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::pair<ControlSocket, ControlSocket>> ControlSocket::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return system_error("socketpair");
  return std::pair(ControlSocket(ends[0]), ControlSocket(ends[1]));
}

Result<void> ControlSocket::send_bytes(std::span<const std::byte> bytes, int flags) const {
  if (bytes.size() > kLongestPacket) return Error(Errc::limit_exceeded, "a control message is too long");
  for (;;) {
    if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return Error(Errc::peer_down, "the other side is gone");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Error(Errc::overloaded, "the other side does not read");
    return system_error("send");
  }
}

Result<std::optional<wire::Bytes>> ControlSocket::receive_bytes(int flags) const {
  wire::Bytes bytes(kLongestPacket);
  for (;;) {
    const ssize_t size = ::recv(fd_, bytes.data(), bytes.size(), flags);
    if (size > 0) {
      bytes.resize(static_cast<std::size_t>(size));
      return std::optional(std::move(bytes));
    }
    if (size == 0 || errno == ECONNRESET) return Error(Errc::peer_down, "the other side is gone");
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<wire::Bytes>();
    return system_error("recv");
  }
}

Result<void> ControlSocket::send(const run::Event& event) const {
  const auto bytes = wire::encode(event);
  if (!bytes) return bytes.error();
  return send_bytes(*bytes, 0);
}

Result<void> ControlSocket::offer(const run::Event& event) const {
  const auto bytes = wire::encode(event);
  if (!bytes) return bytes.error();
  return send_bytes(*bytes, MSG_DONTWAIT);
}

Result<void> ControlSocket::send(const run::Command& command) const {
  const auto bytes = wire::encode(command);
  if (!bytes) return bytes.error();
  return send_bytes(*bytes, MSG_DONTWAIT);
}

Result<run::Command> ControlSocket::receive_command() const {
  const auto bytes = receive_bytes(0);
  if (!bytes) return bytes.error();
  if (!*bytes) return Error(Errc::io_error, "the control socket does not wait");
  return wire::decode<run::Command>(**bytes);
}

Result<std::optional<run::Command>> ControlSocket::receive_command(base::TimePoint until) const {
  pollfd readable{fd_, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - base::SteadyClock().now()).count();
  const int found = ::poll(&readable, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
  if (found < 0 && errno != EINTR) return system_error("poll");
  std::optional<run::Command> command;
  if (found > 0) {
    auto received = receive_command();
    if (!received) return received.error();
    command.emplace(*std::move(received));
  }
  return command;
}

Result<std::optional<run::Event>> ControlSocket::receive_event() const {
  const auto bytes = receive_bytes(MSG_DONTWAIT);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::optional<run::Event>();
  auto event = wire::decode<run::Event>(**bytes);
  if (!event) return event.error();
  return std::optional(*std::move(event));
}

}  // namespace caftan::actors
