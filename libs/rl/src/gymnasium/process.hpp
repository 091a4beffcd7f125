/// A process of Python that steps environments of Gymnasium, and the socket to it: one request, one reply.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/gymnasium.hpp"
#include "caftan/rl/internal/gymnasium_frames.hpp"

namespace caftan::rl::gymnasium {

/// Threads: one at a time.
class Process {
 public:
  /// Starts the interpreter. Errors: invalid_config (there is none), io_error.
  static Result<std::unique_ptr<Process>> start(std::string id, const GymnasiumOptions& options);
  /// Asks the process to end, and kills it if it does not.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Where a request is under way, for errors: the limit and its key.
  struct Limit {
    const char* key = "";
    base::Duration duration{};
  };

  /// Sends a frame and waits for the reply. After an error the process is ended, and each further request fails with
  /// the same error (GY-6).
  /// @param wanted  the kind of the reply
  /// @param most    bytes of its body
  /// @return the body, valid until the next request
  /// Errors: timeout, peer_down, malformed_payload, what an error frame says.
  Result<std::span<const std::byte>> request(Kind kind, std::span<const std::byte> body, Kind wanted, std::size_t most,
                                             Limit limit);
  /// Ends the process for an error that its reply has; each further request fails with it.
  Error fail(Error error);

 private:
  Process(std::string id, int socket, pid_t pid) : id_(std::move(id)), socket_(socket), pid_(pid) {}

  Result<void> send(std::span<const std::byte> bytes, base::TimePoint deadline, const Limit& limit);
  Result<void> receive(std::span<std::byte> bytes, base::TimePoint deadline, const Limit& limit);
  Result<void> wait_for(short events, base::TimePoint deadline, const Limit& limit);
  Result<std::span<const std::byte>> exchange(Kind kind, std::span<const std::byte> body, Kind wanted, std::size_t most,
                                              const Limit& limit);
  Error lost();
  std::string place() const { return "environment 'gymnasium:" + id_ + "'"; }

  std::string id_;
  int socket_;
  pid_t pid_;  // 0: it was waited for
  Error failed_{};
  std::vector<std::byte> body_;
};

}  // namespace caftan::rl::gymnasium
