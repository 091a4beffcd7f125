#include "gymnasium/process.hpp"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gymnasium/worker_script.hpp"

extern char** environ;

namespace caftan::rl::gymnasium {
namespace {

constexpr int kSocketOfChild = 3;
/// How long a process may take to close its environments.
constexpr int kCloseMs = 2000;

Error system_error(const std::string& what, int number) {
  return Error(Errc::io_error, what + ": " + std::strerror(number));
}

/// Waits until the process has ended. @return whether it has
bool wait_for_end(pid_t pid, int milliseconds) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return false;
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&polled, 1, milliseconds);
  ::close(descriptor);
  return ready > 0;
}

/// Waits for the process, which ends or was killed. @return how it ended
std::string reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return "ended";
  }
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

/// Starts the interpreter with the socket as descriptor 3. @return 0 or an errno
int spawn(pid_t& pid, int socket, const GymnasiumOptions& options) {
  const std::string script = options.script.string();
  const std::string descriptor = std::to_string(kSocketOfChild);
  std::vector<const char*> arguments = {options.python.c_str()};
  if (script.empty()) {
    arguments.insert(arguments.end(), {"-c", kWorkerScript});
  } else {
    arguments.push_back(script.c_str());
  }
  arguments.insert(arguments.end(), {descriptor.c_str(), nullptr});
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, socket, kSocketOfChild);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawnp(&pid, options.python.c_str(), &actions, &attributes,
                                    const_cast<char* const*>(arguments.data()), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

Result<std::unique_ptr<Process>> Process::start(std::string id, const GymnasiumOptions& options) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return system_error("a socket for Gymnasium", errno);
  }
  pid_t pid = 0;
  const int failed = spawn(pid, sockets[1], options);
  ::close(sockets[1]);
  if (failed != 0) {
    ::close(sockets[0]);
    if (failed != ENOENT && failed != EACCES) return system_error("starting '" + options.python + "'", failed);
    return Error(Errc::invalid_config, "environment 'gymnasium:" + id + "': there is no interpreter '" +
                                           options.python +
                                           "' (`python`): apt-get install python3, then pip install gymnasium");
  }
  return std::unique_ptr<Process>(new Process(std::move(id), sockets[0], pid));
}

Process::~Process() {
  if (pid_ != 0) {
    const auto bytes = encode(Header{.size = 0, .kind = Kind::close});
    const bool asked =
        failed_.code() == Errc::ok && ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
    if (!asked || !wait_for_end(pid_, kCloseMs)) ::kill(pid_, SIGKILL);
    reap(pid_);
  }
  if (socket_ >= 0) ::close(socket_);
}

Error Process::fail(Error error) {
  if (failed_.code() == Errc::ok) failed_ = std::move(error);
  if (pid_ != 0) {
    ::kill(pid_, SIGKILL);
    reap(std::exchange(pid_, 0));
  }
  return failed_;
}

Error Process::lost() {
  if (!wait_for_end(pid_, kCloseMs)) ::kill(pid_, SIGKILL);
  return Error(Errc::peer_down, place() + ": the process of Gymnasium " + reap(std::exchange(pid_, 0)) +
                                    "; what it printed is in the log of this worker");
}

Result<void> Process::wait_for(short events, base::TimePoint deadline, const Limit& limit) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - base::SteadyClock().now()).count();
    pollfd polled{.fd = socket_, .events = events, .revents = 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_error("waiting for Gymnasium", errno);
    if (ready == 0 && left <= 0) {
      const auto seconds = std::chrono::duration<double>(limit.duration).count();
      return Error(Errc::timeout, place() + ": no reply within " + std::to_string(seconds) + " s (" + limit.key +
                                      "): a longer limit, or an environment that does not hang");
    }
  }
}

Result<void> Process::send(std::span<const std::byte> bytes, base::TimePoint deadline, const Limit& limit) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (auto ready = wait_for(POLLOUT, deadline, limit); !ready) return ready;
    } else if (errno != EINTR) {
      return lost();
    }
  }
  return {};
}

Result<void> Process::receive(std::span<std::byte> bytes, base::TimePoint deadline, const Limit& limit) {
  while (!bytes.empty()) {
    if (auto ready = wait_for(POLLIN, deadline, limit); !ready) return ready;
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return lost();
    }
  }
  return {};
}

Result<std::span<const std::byte>> Process::request(Kind kind, std::span<const std::byte> body, Kind wanted,
                                                    std::size_t most, Limit limit) {
  if (failed_.code() != Errc::ok) return failed_;
  auto reply = exchange(kind, body, wanted, most, limit);
  if (!reply) return fail(reply.error());
  return reply;
}

Result<std::span<const std::byte>> Process::exchange(Kind kind, std::span<const std::byte> body, Kind wanted,
                                                     std::size_t most, const Limit& limit) {
  constexpr std::size_t kMostError = 1U << 16;
  const base::TimePoint deadline = base::SteadyClock().now() + limit.duration;
  const auto head = encode(Header{.size = static_cast<std::uint32_t>(body.size()), .kind = kind});
  body_.assign(head.begin(), head.end());
  body_.insert(body_.end(), body.begin(), body.end());
  if (auto sent = send(body_, deadline, limit); !sent) return sent.error();
  std::array<std::byte, Header::kSize> bytes{};
  if (auto got = receive(bytes, deadline, limit); !got) return got.error();
  const auto header = decode_header(bytes);
  if (!header) return header.error();
  const bool is_error = header->kind == Kind::error;
  if ((!is_error && header->kind != wanted) || header->size > (is_error ? kMostError : most)) {
    return Error(Errc::malformed_payload, place() + ": a reply of kind " +
                                              std::to_string(static_cast<int>(header->kind)) + " with " +
                                              std::to_string(header->size) + " bytes");
  }
  body_.resize(header->size);
  if (auto got = receive(body_, deadline, limit); !got) return got.error();
  if (is_error) return decode_error(body_, id_);
  return std::span<const std::byte>(body_);
}

}  // namespace caftan::rl::gymnasium
