// BI-3: a peer that connects without being a member is dropped with a typed reason, costs next to no memory, and
// disturbs no worker: strangers of each kind come in crowds while two workers call each other all along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "caftan/actors/worker.hpp"
#include "caftan/net/internal/refusal_log.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "soak_size.hpp"

namespace caftan::test::stranger_test {
namespace {

const std::size_t kStrangers = soak_size("CAFTAN_STRANGERS", 500);  // of each kind
constexpr std::size_t kCrowd = 500;                                 // at the same time
constexpr std::uint64_t kLimit = std::uint64_t{1} << 20;
constexpr std::uint64_t kMayGrow = kLimit + (std::uint64_t{16} << 20);

int add(int a, int b) { return a + b; }
Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  return registry;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

class Socket {
 public:
  explicit Socket(int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  static Socket connect(const std::string& path) {
    Socket socket;
    const sockaddr_un address = address_of(path);
    // The listener's queue of connections may be full for a moment; connect() of a blocking socket waits for a place in
    // it.
    EXPECT_EQ(::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  int fd() const { return fd_; }
  /// Sends the bytes; ignores that the other side may have closed the connection already.
  void send(const std::string& bytes) const { (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void end() const { ::shutdown(fd_, SHUT_WR); }
  void wait_until_dropped() const {
    char bytes[4096];
    while (::recv(fd_, bytes, sizeof bytes, 0) > 0) {
    }
  }

 private:
  int fd_;
};

/// Forwards bytes between two workers and keeps the first bytes that the dialling worker sends.
class Relay {
 public:
  Relay(const std::string& at, std::string target) : target_(std::move(target)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    const sockaddr_un address = address_of(at);
    EXPECT_EQ(::bind(listener_.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.fd(), 8), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
    ::close(stop_);
  }
  /// Returns the two messages of a client's handshake. Precondition: the handshake is over.
  std::string handshake() {
    const std::lock_guard lock(mutex_);
    std::size_t end = 0;
    for (int message = 0; message < 2; ++message) {
      std::uint32_t size = 0;
      std::memcpy(&size, said_.data() + end + 9, sizeof size);
      end += 13 + size;
    }
    EXPECT_LE(end, said_.size());
    return said_.substr(0, end);
  }

 private:
  void run() {
    if (!wait_for({listener_.fd()})) return;
    const Socket client(::accept(listener_.fd(), nullptr, nullptr));
    const Socket server = Socket::connect(target_);
    for (;;) {
      if (!wait_for({client.fd(), server.fd()})) return;
      if (!pass(client.fd(), server.fd(), true) || !pass(server.fd(), client.fd(), false)) return;
    }
  }
  bool wait_for(const std::vector<int>& fds) const {
    std::vector<pollfd> waited{{stop_, POLLIN, 0}};
    for (const int fd : fds) waited.push_back({fd, POLLIN, 0});
    ::poll(waited.data(), waited.size(), -1);
    return waited[0].revents == 0;
  }
  bool pass(int from, int to, bool is_client) {
    char bytes[65536];
    const ssize_t size = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN;
    if (is_client) {
      const std::lock_guard lock(mutex_);
      if (said_.size() < 4096) said_.append(bytes, static_cast<std::size_t>(size));
    }
    return size > 0 && ::send(to, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL) == size;
  }

  const std::string target_;
  const int stop_;
  Socket listener_;
  std::mutex mutex_;
  std::string said_;
  std::thread thread_;
};

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class Strangers : public ::testing::Test {
 protected:
  void SetUp() override {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const std::string shown = folder_ / "relay";
    relay_ = std::make_unique<Relay>(shown, folder_ / "a");
    for (const std::string name : {"a", "b"}) {
      WorkerOptions options;
      options.name = name;
      options.world = {{"a", "unix:" + (name == "a" ? folder_ / "a" : shown)}, {"b", "unix:" + (folder_ / "b")}};
      options.secret = "shared by this test";
      options.limits.message = kLimit;
      options.executor =
          std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1});
      if (name == "a") options.log = [this](std::string_view line) { take(line); };
      workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
    caller_ = std::thread([this] { call_on_and_on(); });
  }
  void TearDown() override {
    done_ = true;
    caller_.join();
    EXPECT_EQ(wrong_.load(), 0U) << "of " << calls_.load() << " calls between good workers";
    workers_.clear();
  }

  using Approach = std::function<void(const Socket&, std::mt19937_64&)>;
  /// All strangers come, in crowds; each waits until it is dropped.
  void come(const Approach& approach) {
    std::mt19937_64 random(20261121);
    // Run before the first measurement: buffers of threads, for example, are no growth.
    crowd(approach, random, kCrowd);
    const std::uint64_t before = resident_bytes();
    std::uint64_t most = before;
    for (std::size_t come = kCrowd; come < std::max(kStrangers, 2 * kCrowd); come += kCrowd) {
      most = std::max(most, crowd(approach, random, kCrowd));
    }
    RecordProperty("grown_KiB", static_cast<int>((most - before) / 1024));
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
    EXPECT_LE(most - before, kMayGrow);
#endif
  }
  /// Makes `size` connections at once and returns the resident memory of this process while all of them are open.
  std::uint64_t crowd(const Approach& approach, std::mt19937_64& random, std::size_t size) {
    std::vector<Socket> sockets;
    for (std::size_t i = 0; i < size; ++i) {
      sockets.push_back(Socket::connect(folder_ / "a"));
      approach(sockets.back(), random);
    }
    const std::uint64_t resident = resident_bytes();
    const std::uint64_t calls = calls_.load();
    calls_.wait(calls);  // all strangers are connected, and the workers go on calling
    for (const Socket& socket : sockets) socket.wait_until_dropped();
    came_ += size;
    return resident;
  }
  /// Expects that every stranger was dropped for this reason. The first refusals of each reason are logged (K4, HS-14),
  /// so a stranger that was dropped for another reason would have a line in the log.
  void expect_dropped(Errc reason) {
    const std::size_t lines = std::min(came_, net::RefusalLog::kLines);
    std::unique_lock lock(mutex_);
    // The line about the last stranger may be written after its socket was closed.
    logged_.wait(lock, [this, lines] { return refused_total() >= lines; });
    // There are more lines than `lines` when the test runs for over a minute, as its long form does: then the log of
    // refusals takes the next ones.
    EXPECT_THAT(refused_,
                ::testing::ElementsAre(::testing::Pair(std::string(to_string(reason)), ::testing::Ge(lines))));
  }
  std::size_t refused_total() const {
    std::size_t sum = 0;
    for (const auto& [reason, count] : refused_) sum += count;
    return sum;
  }

  std::string handshake() { return relay_->handshake(); }

 private:
  void take(std::string_view line) {
    constexpr std::string_view kRefused = "a connection was refused: ";
    if (!line.starts_with(kRefused)) return;
    const std::string_view error = line.substr(kRefused.size());
    const std::lock_guard lock(mutex_);
    ++refused_[std::string(error.substr(0, error.find(':')))];
    logged_.notify_all();
  }
  void call_on_and_on() {
    for (int i = 0; !done_; ++i) {
      const auto sum = workers_[1]->try_rpc_sync<&add>("a", i, 1);
      if (!sum || *sum != i + 1) ++wrong_;
      ++calls_;
      calls_.notify_all();
    }
  }

 protected:
  const Folder folder_;
  std::mutex mutex_;
  std::condition_variable logged_;
  std::map<std::string, std::size_t> refused_;
  std::size_t came_ = 0;

 private:
  std::unique_ptr<Relay> relay_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> wrong_{0};
  std::thread caller_;
};

TEST_F(Strangers, BI3_RandomBytesAreDropped) {
  come([](const Socket& socket, std::mt19937_64& random) {
    std::string bytes(16 + random() % 2000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (bytes[0] == 'C' || bytes[0] == 0x16) bytes[0] = 'D';  // neither our hello nor a record of TLS
    socket.send(bytes);
  });
  expect_dropped(Errc::malformed_payload);
}

TEST_F(Strangers, BI3_HandshakesThatStopAreDropped) {
  come([whole = handshake()](const Socket& socket, std::mt19937_64& random) {
    // Sends a random part of the client's hello, at most all of it, and never the proof that has to follow.
    std::uint32_t hello = 0;
    std::memcpy(&hello, whole.data() + 9, sizeof hello);
    socket.send(whole.substr(0, random() % (13 + hello + 1)));
    socket.end();
  });
  expect_dropped(Errc::peer_down);
}

TEST_F(Strangers, BI3_AnnouncedLengthsAreNotBelieved) {
  come([whole = handshake()](const Socket& socket, std::mt19937_64& random) {
    // Magic number and kind; then follow four bytes of size, and four more that a reader of 64 bits would take as part
    // of the size.
    std::string bytes = whole.substr(0, 9);
    const std::uint64_t sizes[] = {1012, 65536, 1U << 31, ~0U, std::uint64_t{1} << 40, ~std::uint64_t{0}};
    const std::uint64_t size = sizes[random() % 6] | 1024;
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    socket.send(bytes + std::string(random() % 1000, 'x'));
  });
  expect_dropped(Errc::malformed_payload);
}

TEST_F(Strangers, BI3_AReplayedHandshakeIsDropped) {
  come([whole = handshake()](const Socket& socket, std::mt19937_64&) { socket.send(whole); });
  expect_dropped(Errc::not_authenticated);
}

TEST_F(Strangers, BI3_SilentOnesAreDroppedWhenTheirTimeIsOver) {
  come([](const Socket&, std::mt19937_64&) {});
  expect_dropped(Errc::timeout);
}

TEST_F(Strangers, BI3_MoreThanMayShakeHandsAtOnceAreTurnedAway) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 4096) GTEST_SKIP() << "needs 4096 descriptors, has " << limit.rlim_cur;
  std::mt19937_64 random(1);
  crowd([](const Socket&, std::mt19937_64&) {}, random, 1100);
  std::unique_lock lock(mutex_);
  constexpr std::size_t kLines = net::RefusalLog::kLines;  // of 76 and of 1024
  logged_.wait(lock, [this] { return refused_total() >= 2 * kLines; });
  EXPECT_THAT(refused_,
              ::testing::ElementsAre(::testing::Pair("overloaded", kLines), ::testing::Pair("timeout", kLines)));
}

}  // namespace
}  // namespace caftan::test::stranger_test
