// A peer that is killed at any moment of its set-up, of its traffic and of its sleeps: the side that is left reads what
// was written, then the end, and gives back all that the session took (docs/protocols/shm.md, DP-3, DP-6 and DP-8).
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "caftan/base/ids.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/shm/ring.hpp"
#include "channels/shm/shm_channel.hpp"
#include "channels/shm/shm_socket.hpp"

namespace caftan::transport::shm_kill_test {
namespace {

constexpr std::size_t kRing = 4096;
constexpr std::size_t kMessage = 10'007;  // more than two rings
constexpr int kMoments = 200;

std::byte byte_at(std::size_t position) { return static_cast<std::byte>(mix64(position)); }

/// The side that dials, made of the parts of a channel so that it can end between any two of them. Runs in a process of
/// its own, which has one thread.
class Dialler {
 public:
  /// @param last  the number of the moment at which the process kills itself
  Dialler(int fd, int last) : fd_(fd), last_(last) {}

  /// Never returns.
  [[noreturn]] void run() {
    const char hello = static_cast<char>(byte_at(0));
    moment();
    (void)::send(fd_, &hello, 1, MSG_NOSIGNAL);
    sent_ = 1;
    moment();
    auto made = SharedMemory::make(two_rings(kRing));
    if (!made) ::_exit(1);
    memory_ = std::make_shared<SharedMemory>(*std::move(made));
    moment();
    if (send_descriptor(fd_, memory_->fd()) != Sent::yes) ::_exit(1);
    moment();
    writer_.emplace(memory_, false);
    for (std::size_t end = kMessage;; end += kMessage) {
      while (sent_ < end || got_ < end) {
        const bool written = write(end);
        const bool got = read();
        if (!written && !got) wait(sent_ < end);
      }
    }
  }

 private:
  void moment() {
    if (moments_++ == last_) ::raise(SIGKILL);
  }
  void ring() {
    moment();  // between the counter and the bell
    const char bell = 0;
    (void)::send(fd_, &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    moment();
  }
  bool write(std::size_t end) {
    std::array<std::byte, 3001> bytes;
    const std::size_t size = std::min(bytes.size(), end - sent_);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(sent_ + i);
    const iovec vector{bytes.data(), size};
    const auto put = writer_->write(&vector, 1, [this] { ring(); });
    if (!put) ::_exit(1);
    sent_ += *put;
    moment();
    return *put > 0;
  }
  bool read() {
    std::array<std::byte, 2003> bytes;
    const iovec vector{bytes.data(), bytes.size()};
    std::size_t size = 0;
    bool has_switched = false;
    if (reader_) {
      const auto got = reader_->read(&vector, 1, [this] { ring(); });
      if (!got) ::_exit(1);
      size = *got;
    } else {
      const auto got = read_socket(fd_, &vector, 1);
      if (!got) ::_exit(1);
      size = got->bytes;
      if (got->descriptor >= 0) {
        ::close(got->descriptor);
        reader_.emplace(memory_, true);
        has_switched = true;
        moment();
      }
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (bytes[i] != byte_at(got_ + i)) ::_exit(2);
    }
    got_ += size;
    moment();
    return size > 0 || has_switched;
  }
  void wait(bool for_room) {
    if (reader_ && !reader_->arm([this] {
          moment();
          std::array<char, 256> bells;
          (void)!::recv(fd_, bells.data(), bells.size(), MSG_DONTWAIT);
        })) {
      return;
    }
    moment();
    if (for_room && !writer_->arm()) return;
    moment();
    pollfd waits{fd_, POLLIN, 0};
    ::poll(&waits, 1, -1);
    moment();
  }

  const int fd_;
  const int last_;
  int moments_ = 0;
  std::size_t sent_ = 0;
  std::size_t got_ = 0;
  std::shared_ptr<SharedMemory> memory_;
  std::optional<RingWriter> writer_;
  std::optional<RingReader> reader_;
};

/// Sends back all that a channel brings, until the stream ends.
class Echo : public std::enable_shared_from_this<Echo> {
 public:
  explicit Echo(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

  void start() {
    channel_->start([weak = weak_from_this()](bool, bool) {
      if (const auto self = weak.lock()) self->on_ready();
    });
    const std::lock_guard lock(mutex_);
    arm();
  }
  /// Waits for the end of the stream. Returns its error.
  Error end() { return ended_.get_future().get(); }
  /// Returns whether all bytes that came are the ones that were sent.
  bool is_right() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] != byte_at(i)) return false;
    }
    return true;
  }

 private:
  void arm() {
    if (!has_ended_) channel_->arm(true, !has_failed_ && sent_ < bytes_.size());
  }
  void on_ready() {
    const std::lock_guard lock(mutex_);
    while (read()) {
    }
    while (!has_failed_ && sent_ < bytes_.size() && write()) {
    }
    arm();
  }
  bool read() {
    std::array<std::byte, 1777> bytes;
    const iovec vector{bytes.data(), bytes.size()};
    const auto got = channel_->read(&vector, 1);
    if (!got && !std::exchange(has_ended_, true)) ended_.set_value(got.error());
    if (!got || *got == 0) return false;
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*got));
    return true;
  }
  bool write() {
    const iovec vector{bytes_.data() + sent_, bytes_.size() - sent_};
    const auto put = channel_->write(&vector, 1);
    has_failed_ = !put;
    if (!put || *put == 0) return false;
    sent_ += *put;
    return true;
  }

  std::mutex mutex_;
  const std::shared_ptr<Channel> channel_;
  wire::Bytes bytes_;
  std::size_t sent_ = 0;
  bool has_ended_ = false;
  bool has_failed_ = false;
  std::promise<Error> ended_;
};

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

bool maps_a_ring() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("caftan-ring") != std::string::npos) return true;
  }
  return false;
}

/// Talks with a peer that kills itself at its moment with that number.
void talk(int last, SharedMemoryBudget& budget) {
  SCOPED_TRACE("killed at moment " + std::to_string(last));
  std::array<int, 2> fds;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
  const pid_t child = ::fork();  // before this process has another thread
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(fds[1]);
    Dialler(fds[0], last).run();
  }
  ::close(fds[0]);
  {
    ThreadedExecutor executor({.runners = 1});
    auto share = budget.take(two_rings(kRing), two_rings(kRing));
    ASSERT_TRUE(share);
    const auto channel = make_shm_channel(executor, fds[1], {.ring = kRing}, *std::move(share));
    const auto echo = std::make_shared<Echo>(channel);
    echo->start();
    EXPECT_EQ(echo->end().code(), Errc::peer_down);
    EXPECT_TRUE(echo->is_right());
    channel->close();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST(ShmKill, DP6_DP8_WhereverThePeerIsKilledTheOtherSideEndsAndGivesAllBack) {
  SharedMemoryBudget budget;
  talk(0, budget);  // what a process opens once is open then
  const std::size_t before = open_descriptors();
  for (int last = 1; last < kMoments && !HasFailure(); ++last) {
    talk(last, budget);
    EXPECT_EQ(open_descriptors(), before) << last;
    EXPECT_FALSE(maps_a_ring()) << last;
    EXPECT_EQ(budget.used(), 0U) << last;
  }
}

}  // namespace
}  // namespace caftan::transport::shm_kill_test
