/// One end of the local socket pair between the launcher and a process of its run, which carries whole packets, in
/// order. By the end of file each side learns that the other side has ended, whatever the cause.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/run/internal/run_messages.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::actors {

class ControlSocket {
 public:
  ControlSocket() = default;
  explicit ControlSocket(int fd) noexcept : fd_(fd) {}
  ControlSocket(ControlSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ControlSocket& operator=(ControlSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ControlSocket();

  /// Returns both ends, closed on exec. Errors: io_error.
  static Result<std::pair<ControlSocket, ControlSocket>> make_pair();

  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  /// Blocks while the other side does not read. Errors: peer_down, limit_exceeded (longer than a packet), io_error.
  Result<void> send(const run::Event& event) const;
  /// Never blocks. Errors: those of the other `send`; overloaded (the other side does not read).
  Result<void> send(const run::Command& command) const;
  Result<void> offer(const run::Event& event) const;

  /// Waits for the next packet. Errors: peer_down (the other side is gone), malformed_payload, io_error.
  Result<run::Command> receive_command() const;
  /// Returns the next packet, nothing if none comes until `until`. Errors: those of the other receive_command.
  Result<std::optional<run::Command>> receive_command(base::TimePoint until) const;
  /// Returns the next packet, nothing if there is none now. Errors: those of receive_command.
  Result<std::optional<run::Event>> receive_event() const;

 private:
  Result<void> send_bytes(std::span<const std::byte> bytes, int flags) const;
  Result<std::optional<wire::Bytes>> receive_bytes(int flags) const;

  int fd_ = -1;
};

}  // namespace caftan::actors
