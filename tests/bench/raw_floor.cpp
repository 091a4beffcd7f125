// The floor: what the kernel and the memory of this machine allow, without any framework. One process echoes, the
// other measures, over a blocking socket or over shared memory with a futex. A message is a 64-byte head and the
// tensor's bytes; both ends take a message in whole before they answer, as a call has to. With "bells" the message lies
// in shared memory, and what wakes the other end is a byte on a Unix socket, an eventfd or a futex.
//
//   raw_floor unix | tcp | futex | memcpy | bells
//   raw_floor tcp ADDRESS NAMESPACE   to a network namespace from which this one is reached at ADDRESS (distant.py)
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
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
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

constexpr std::size_t kHeadBytes = 64;
constexpr std::size_t kMaxPayload = std::size_t{64} << 20;

struct Head {
  std::uint64_t payload_bytes = 0;
  std::uint64_t adds = 0;  ///< 1: the payload are floats, and the answer has each of them plus one
  std::array<char, kHeadBytes - 2 * sizeof(std::uint64_t)> padding{};
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

std::vector<char> make_message(std::size_t floats, bool adds = false) {
  std::vector<char> message(kHeadBytes + floats * sizeof(float));
  Head head;
  head.payload_bytes = floats * sizeof(float);
  head.adds = adds ? 1 : 0;
  std::memcpy(message.data(), &head, sizeof head);
  return message;
}

const float* floats_of(const std::vector<char>& message) {
  return reinterpret_cast<const float*>(message.data() + kHeadBytes);
}

/// Returns a message whose floats are those of `message` plus one.
const std::vector<char>& plus_one(const std::vector<char>& message, std::size_t size, std::vector<char>& sums) {
  if (sums.size() < size) sums.resize(size);
  std::memcpy(sums.data(), message.data(), kHeadBytes);
  const float* from = floats_of(message);
  auto* to = reinterpret_cast<float*>(sums.data() + kHeadBytes);
  for (std::size_t i = 0; i < (size - kHeadBytes) / sizeof(float); ++i) to[i] = from[i] + 1;
  return sums;
}

int echo_socket(int fd) {
  std::vector<char> buffer(4096);
  std::vector<char> sums;
  for (;;) {
    const std::size_t size = receive_message(fd, buffer);
    if (size == 0) return 0;
    Head head;
    std::memcpy(&head, buffer.data(), sizeof head);
    const std::vector<char>& answer = head.adds == 1 ? plus_one(buffer, size, sums) : buffer;
    if (!send_all(fd, answer.data(), size)) return 0;
  }
}

/// Where the two ends of a TCP connection are.
struct TcpPlaces {
  std::string address = "127.0.0.1";  ///< of the end that listens
  std::string far_namespace{};        ///< of the end that connects; empty: where this process is
};

/// Returns two connected TCP sockets.
std::array<int, 2> tcp_pair(const TcpPlaces& places) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, places.address.c_str(), &address.sin_addr) != 1) fail("raw_floor: address");
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, generic, length) != 0 || listen(listener, 1) != 0) fail("raw_floor: listen");
  if (getsockname(listener, generic, &length) != 0) fail("raw_floor: getsockname");
  if (!places.far_namespace.empty() && !enter_namespace(places.far_namespace)) fail("raw_floor: namespace");
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (client < 0 || connect(client, generic, length) != 0) fail("raw_floor: connect");
  const int server = accept(listener, nullptr, nullptr);
  if (server < 0) fail("raw_floor: accept");
  close(listener);
  const int on = 1;
  for (const int fd : {client, server}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {client, server};
}

int run_socket(const std::string& kind, const TcpPlaces& places) {
  std::array<int, 2> pair{};
  if (kind == "tcp") {
    pair = tcp_pair(places);
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
      {"fresh",
       [&](const Request& request) {
         const auto message = make_message(request.floats, true);
         return rig.sync(request, [&] {
           call(message);
           std::array<float, 8> sums{};  // several, so that additions do not wait for each other
           for (std::size_t i = 0; i < request.floats; ++i) sums[i % sums.size()] += floats_of(reply)[i];
           asm volatile("" : : "r"(sums.data()) : "memory");
         });
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

// ---- bells

/// One end of a bell: rings the other end, and sleeps until that one rings.
struct BellEnd {
  std::function<void()> ring;
  std::function<void()> wait;
};

/// Sleeps until `bell` or `own` can be read, as a caller does that claimed its session: a notification of its own
/// process must wake it, too.
void poll_bell(int bell, int own) {
  pollfd fds[2] = {{bell, POLLIN, 0}, {own, POLLIN, 0}};
  while (poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
}

int event_fd() {
  const int fd = eventfd(0, EFD_NONBLOCK);
  if (fd < 0) fail("raw_floor: eventfd");
  return fd;
}

std::array<BellEnd, 2> socket_bell() {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) != 0) fail("raw_floor: socketpair");
  const auto end = [](int fd, int own) {
    return BellEnd{[fd] {
                     const char byte = 1;
                     // A full socket has rings that the other end did not have to sleep for.
                     if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 && errno != EAGAIN) fail("raw_floor: bell");
                   },
                   [fd, own] {
                     char bytes[64];
                     for (;;) {
                       poll_bell(fd, own);
                       if (recv(fd, bytes, sizeof bytes, 0) > 0) return;
                     }
                   }};
  };
  return {end(pair[0], event_fd()), end(pair[1], event_fd())};
}

std::array<BellEnd, 2> eventfd_bell() {
  const std::array<int, 2> bells{event_fd(), event_fd()};
  const auto end = [](int theirs, int ours, int own) {
    return BellEnd{[theirs] {
                     const std::uint64_t one = 1;
                     if (write(theirs, &one, sizeof one) != sizeof one) fail("raw_floor: bell");
                   },
                   [ours, own] {
                     std::uint64_t count = 0;
                     for (;;) {
                       poll_bell(ours, own);
                       if (read(ours, &count, sizeof count) > 0) return;
                     }
                   }};
  };
  return {end(bells[1], bells[0], event_fd()), end(bells[0], bells[1], event_fd())};
}

/// What both processes of a bell share.
struct BellTurn {
  alignas(64) std::atomic<std::uint32_t> request{0};  // counts what the measuring process has sent
  alignas(64) std::atomic<std::uint32_t> reply{0};
  std::atomic<int> peer_core{-1};
  std::atomic<bool> ended{false};
  std::array<char, kHeadBytes> message{};
};

std::array<BellEnd, 2> futex_bell(BellTurn* turn) {
  const auto ring = [](std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  };
  // The word that was rung last, as the sleeper knows it; each end has its own.
  const auto end = [ring](std::atomic<std::uint32_t>& theirs, std::atomic<std::uint32_t>& ours) {
    return BellEnd{[ring, &theirs] { ring(theirs); },
                   [&ours, seen = std::uint32_t{0}]() mutable {
                     futex_wait_while(ours, seen);
                     seen = ours.load();
                   }};
  };
  return {end(turn->request, turn->reply), end(turn->reply, turn->request)};
}

/// A bell, its peer process, which answers each ring with one of its own, and the calls over it.
class BellCaller {
 public:
  explicit BellCaller(const std::function<std::array<BellEnd, 2>(BellTurn*)>& make) {
    void* memory = mmap(nullptr, sizeof(BellTurn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("raw_floor: mmap");
    turn_ = new (memory) BellTurn;
    auto ends = make(turn_);
    end_ = std::move(ends[0]);
    peer_ = std::make_unique<PeerProcess>([this, end = std::move(ends[1])](const ParentLink&) {
      std::array<char, kHeadBytes> copy{};
      for (std::uint32_t seen = 0;; ++seen) {
        while (turn_->request.load(std::memory_order_acquire) == seen) end.wait();
        if (turn_->ended.load()) return 0;
        copy = turn_->message;
        turn_->message = copy;
        turn_->peer_core.store(sched_getcpu(), std::memory_order_relaxed);
        turn_->reply.store(seen + 1, std::memory_order_release);
        end.ring();
      }
    });
    sched_getaffinity(0, sizeof all_, &all_);
  }
  ~BellCaller() {
    turn_->ended.store(true);
    turn_->request.fetch_add(1);
    end_.ring();
  }

  pid_t pid() const { return peer_->pid(); }

  /// Where the scheduler may run the two ends.
  enum class Place { free, same, apart };

  Line measure(const Rig& rig, const Request& request, Place place) {
    pin(place);
    cores_.clear();
    Line line = rig.sync(request, [this] { call(); });
    pin(Place::free);
    std::uint64_t calls = 0;
    for (const auto& [cores, count] : cores_) calls += count;
    std::string json;
    for (const auto& [cores, count] : cores_) {
      char text[64];
      std::snprintf(text, sizeof text, "%s\"%d-%d\":%.3f", json.empty() ? "" : ",", cores.first, cores.second,
                    static_cast<double>(count) / static_cast<double>(calls));
      json += text;
    }
    return line.add_json("cores", "{" + json + "}");
  }

 private:
  void call() {
    std::array<char, kHeadBytes> message{};
    message.fill(static_cast<char>(calls_));
    turn_->message = message;
    turn_->request.store(++calls_, std::memory_order_release);
    end_.ring();
    while (turn_->reply.load(std::memory_order_acquire) != calls_) end_.wait();
    ++cores_[{sched_getcpu(), turn_->peer_core.load(std::memory_order_relaxed)}];
  }

  /// Pins both ends to the first core, or to the first two, or lets them go.
  void pin(Place place) {
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
      if (CPU_ISSET(core, &all_)) cores.push_back(core);
    }
    cpu_set_t own = all_;
    cpu_set_t peers = all_;
    if (place != Place::free) {
      CPU_ZERO(&own);
      CPU_SET(cores.front(), &own);
      CPU_ZERO(&peers);
      CPU_SET(place == Place::same ? cores.front() : cores.back(), &peers);
    }
    if (sched_setaffinity(0, sizeof own, &own) != 0) fail("raw_floor: affinity");
    if (sched_setaffinity(peer_->pid(), sizeof peers, &peers) != 0) fail("raw_floor: affinity");
  }

  BellTurn* turn_ = nullptr;
  BellEnd end_;
  std::unique_ptr<PeerProcess> peer_;
  std::uint32_t calls_ = 0;
  cpu_set_t all_{};
  std::map<std::pair<int, int>, std::uint64_t> cores_;  // {own core, the peer's} of each reply
};

int run_bells() {
  BellCaller socket([](BellTurn*) { return socket_bell(); });
  BellCaller eventfd([](BellTurn*) { return eventfd_bell(); });
  BellCaller futex([](BellTurn* turn) { return futex_bell(turn); });
  const Rig rig("raw bells", {socket.pid(), eventfd.pid(), futex.pid()});
  std::map<std::string, Measure> measures;
  const std::pair<std::string, BellCaller*> bells[] = {{"socket", &socket}, {"eventfd", &eventfd}, {"futex", &futex}};
  const std::pair<std::string, BellCaller::Place> places[] = {
      {"", BellCaller::Place::free}, {"_same", BellCaller::Place::same}, {"_apart", BellCaller::Place::apart}};
  for (const auto& [name, bell] : bells) {
    for (const auto& [suffix, place] : places) {
      measures[name + suffix] = [&rig, bell = bell, place = place](const Request& request) {
        return bell->measure(rig, request, place);
      };
    }
  }
  return rig.serve(measures);
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
  if (argc == 4 && std::string(argv[1]) == "tcp") return caftan::bench::run_socket("tcp", {argv[2], argv[3]});
  const std::string kind = argc == 2 ? argv[1] : "";
  if (kind == "unix" || kind == "tcp") return caftan::bench::run_socket(kind, {});
  if (kind == "futex") return caftan::bench::run_futex();
  if (kind == "memcpy") return caftan::bench::run_memcpy();
  if (kind == "bells") return caftan::bench::run_bells();
  std::fprintf(stderr, "usage: raw_floor unix | tcp [ADDRESS NAMESPACE] | futex | memcpy | bells\n");
  return 2;
}
