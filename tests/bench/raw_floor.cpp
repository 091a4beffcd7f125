// The floor: what the kernel and the memory of this machine allow, without any framework. One process echoes, the
// other measures, over a blocking socket or over shared memory with a futex. A message is a 64-byte head and the
// tensor's bytes; both ends take a message in whole before they answer, as a call has to.
//
//   raw_floor unix | tcp | futex | memcpy
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "measure.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

constexpr std::size_t kHeadBytes = 64;
constexpr std::size_t kMaxPayload = std::size_t{64} << 20;

struct Head {
  std::uint64_t payload_bytes = 0;
  std::array<char, kHeadBytes - sizeof(std::uint64_t)> padding{};
};
static_assert(sizeof(Head) == kHeadBytes);

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

bool send_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// Receives one whole message; a small one with a single system call. Returns its bytes, 0 at the end of the stream.
std::size_t receive_message(int fd, std::vector<char>& buffer) {
  std::size_t have = 0;
  std::size_t want = kHeadBytes;
  while (have < want) {
    const std::size_t room = have < kHeadBytes ? std::min<std::size_t>(buffer.size(), 4096) - have : want - have;
    const ssize_t got = recv(fd, buffer.data() + have, room, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    have += static_cast<std::size_t>(got);
    if (have >= kHeadBytes) {
      Head head;
      std::memcpy(&head, buffer.data(), sizeof head);
      if (head.payload_bytes > kMaxPayload) return 0;
      want = kHeadBytes + head.payload_bytes;
      if (buffer.size() < want) buffer.resize(want);
    }
  }
  return have;
}

std::vector<char> make_message(std::size_t floats) {
  std::vector<char> message(kHeadBytes + floats * sizeof(float));
  Head head;
  head.payload_bytes = floats * sizeof(float);
  std::memcpy(message.data(), &head, sizeof head);
  return message;
}

int echo_socket(int fd) {
  std::vector<char> buffer(4096);
  for (;;) {
    const std::size_t size = receive_message(fd, buffer);
    if (size == 0 || !send_all(fd, buffer.data(), size)) return 0;
  }
}

/// Returns two connected TCP sockets of the loopback device.
std::array<int, 2> tcp_pair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, generic, length) != 0 || listen(listener, 1) != 0) fail("raw_floor: listen");
  if (getsockname(listener, generic, &length) != 0) fail("raw_floor: getsockname");
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (client < 0 || connect(client, generic, length) != 0) fail("raw_floor: connect");
  const int server = accept(listener, nullptr, nullptr);
  if (server < 0) fail("raw_floor: accept");
  close(listener);
  const int on = 1;
  for (const int fd : {client, server}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {client, server};
}

int run_socket(const std::string& kind) {
  std::array<int, 2> pair{};
  if (kind == "tcp") {
    pair = tcp_pair();
  } else if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) {
    fail("raw_floor: socketpair");
  }
  PeerProcess peer([&](const ParentLink&) {
    close(pair[0]);
    return echo_socket(pair[1]);
  });
  close(pair[1]);
  const int fd = pair[0];
  std::vector<char> reply(4096);
  const auto call = [&](const std::vector<char>& message) {
    if (!send_all(fd, message.data(), message.size()) || receive_message(fd, reply) != message.size()) {
      fail("raw_floor: echo");
    }
  };
  const Rig rig("raw " + kind, {peer.pid()});
  const int code = rig.serve({
      {"sync",
       [&](const Request& request) {
         const auto message = make_message(request.floats);
         return rig.sync(request, [&] { call(message); });
       }},
      {"pipelined",
       [&](const Request& request) {
         const auto message = make_message(request.floats);
         const auto submit = [&](std::size_t) {
           if (!send_all(fd, message.data(), message.size())) fail("raw_floor: send");
         };
         // Reads exactly one reply: with a larger buffer the read would also take a part of the next one.
         std::vector<char> one(message.size());
         const auto wait = [&](std::size_t) {
           if (recv(fd, one.data(), one.size(), MSG_WAITALL) != static_cast<ssize_t>(one.size())) {
             fail("raw_floor: receive");
           }
         };
         return rig.pipelined(request, submit, wait);
       }},
      {"idle", [&](const Request& request) { return rig.idle(request); }},
  });
  close(fd);  // the echo process then reads the end of the stream and leaves
  return code;
}

/// Lies in memory that both processes share; the payloads lie behind it.
struct SharedTurn {
  std::atomic<std::uint32_t> request{0};
  std::atomic<std::uint32_t> reply{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<bool> ended{false};
};

void futex_wait_while(std::atomic<std::uint32_t>& word, std::uint32_t old) {
  while (word.load(std::memory_order_acquire) == old) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, old, nullptr, nullptr, 0);
  }
}

void futex_set(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

int run_futex() {
  constexpr std::size_t kTurnBytes = 4096;
  const std::size_t total = kTurnBytes + 2 * kMaxPayload;
  void* memory = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("raw_floor: mmap");
  auto* turn = new (memory) SharedTurn;
  char* to_peer = static_cast<char*>(memory) + kTurnBytes;
  char* from_peer = to_peer + kMaxPayload;
  PeerProcess peer([&](const ParentLink&) {
    for (std::uint32_t seen = 0;; ++seen) {
      futex_wait_while(turn->request, seen);
      if (turn->ended.load()) return 0;
      std::memcpy(from_peer, to_peer, turn->bytes.load());
      futex_set(turn->reply, seen + 1);
    }
  });
  std::uint32_t calls = 0;
  const Rig rig("raw futex", {peer.pid()});
  const int code = rig.serve({
      {"sync",
       [&](const Request& request) {
         std::vector<char> payload(request.floats * sizeof(float));
         if (payload.size() > kMaxPayload) fail("raw_floor: payload");
         // Each direction has one copy: this process copies the payload into the shared memory, and the peer copies it
         // to the place of the reply there. The reply is read in place.
         return rig.sync(request, [&] {
           std::memcpy(to_peer, payload.data(), payload.size());
           turn->bytes.store(payload.size());
           futex_set(turn->request, ++calls);
           futex_wait_while(turn->reply, calls - 1);
         });
       }},
      {"idle", [&](const Request& request) { return rig.idle(request); }},
  });
  turn->ended.store(true);
  futex_set(turn->request, calls + 1);
  return code;
}

int run_memcpy() {
  const Rig rig("raw memcpy", {});
  return rig.serve({{"copy", [&](const Request& request) {
                       const std::size_t bytes = request.floats * sizeof(float);
                       std::vector<char> from(bytes, 1);
                       std::vector<char> to(bytes, 2);
                       std::uint64_t copies = 0;
                       const auto start = std::chrono::steady_clock::now();
                       auto now = start;
                       while (copies < request.calls && now - start < request.time) {
                         std::memcpy(to.data(), from.data(), bytes);
                         asm volatile("" : : "r"(to.data()) : "memory");  // makes the compiler keep the copy
                         ++copies;
                         now = std::chrono::steady_clock::now();
                       }
                       const double ns = static_cast<double>((now - start).count());
                       Line line;
                       line.add("side", std::string("raw memcpy")).add("measure", request.measure);
                       line.add("bytes", std::uint64_t{bytes}).add("copies", copies);
                       return line.add("gb_per_s", static_cast<double>(bytes) * static_cast<double>(copies) / ns);
                     }}});
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  const std::string kind = argc == 2 ? argv[1] : "";
  if (kind == "unix" || kind == "tcp") return caftan::bench::run_socket(kind);
  if (kind == "futex") return caftan::bench::run_futex();
  if (kind == "memcpy") return caftan::bench::run_memcpy();
  std::fprintf(stderr, "usage: raw_floor unix | tcp | futex | memcpy\n");
  return 2;
}
