// A peer that is killed at any moment of its set-up, of its traffic and of its sleeps: the side that is left reads what
// was written, then the end, and gives back all that the session took (docs/protocols/shm.md, DP-3, DP-6 and DP-8).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/net/internal/outbox.hpp"
#include "caftan/transport/internal/session.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/shm/lending.hpp"
#include "channels/shm/ring.hpp"
#include "channels/shm/shm_channel.hpp"
#include "channels/shm/shm_socket.hpp"
#include "folder.hpp"

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

// ---- tensors that are lent

constexpr std::size_t kTensor = 300'000;
constexpr std::size_t kSmallTensor = 20'000;  // follows as chunks
constexpr std::size_t kReadAtOnce = 70'000;

wire::Bytes tensor_of(std::uint64_t call, std::size_t size) {
  wire::Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(call * 1'000'003 + i / 64);
  return bytes;
}

/// The side that dials: lends tensors with its calls, and reads them back out of the memory of the side that answers.
/// Made of the parts of a session, in a process of its own, which has one thread.
class LendingDialler {
 public:
  /// @param last  the number of the moment at which the process kills itself @param pause  turns of a loop before that
  LendingDialler(int fd, int last, int pause) : fd_(fd), last_(last), pause_(pause) {}

  /// Never returns.
  [[noreturn]] void run() {
    auto made = SharedMemory::make(two_rings(kRing));
    const auto process = process_of_peer(fd_);
    if (!made || !process) ::_exit(1);
    memory_ = std::make_shared<SharedMemory>(*std::move(made));
    lending_ = std::make_unique<Lending>(RingPlace(*memory_, false).header, RingPlace(*memory_, true).header, *process,
                                         nullptr);
    moment();
    if (!lending_->show()) ::_exit(1);
    moment();
    if (send_descriptor(fd_, memory_->fd()) != Sent::yes) ::_exit(1);
    writer_.emplace(memory_, false);
    while (!reader_) switch_reading();
    for (std::uint64_t call = 1;; ++call) {
      const auto large = std::make_shared<wire::Bytes>(tensor_of(call, kTensor));
      const auto small = std::make_shared<wire::Bytes>(tensor_of(call, kSmallTensor));
      wire::OutFrame frame;
      frame.header.kind = wire::FrameKind::call;
      frame.header.call = call;
      frame.segments = {{large->data(), large->size(), large}, {small->data(), small->size(), small}};
      frame.lends = lending_->peer_reads();
      if (!frame.lends) ::_exit(3);
      net::Outbox outbox;
      outbox.append(std::move(frame));
      bool is_taken = false;
      std::optional<wire::InFrame> answer;
      while (!answer || !is_taken) {
        const bool wrote = write(outbox);
        const bool got = read();
        for (;;) {
          const auto item = frames_.next();
          if (!item) ::_exit(5);
          if (*item == wire::FrameReader::Item::nothing) break;
          wire::InFrame in = frames_.take();
          moment();
          if (in.header.kind == wire::FrameKind::taken) is_taken = true;
          if (in.header.kind == wire::FrameKind::response) answer = std::move(in);
        }
        if (!wrote && !got) wait(!outbox.empty());
      }
      if (answer->segments[0].view().size() != kTensor || !std::ranges::equal(answer->segments[0].view(), *large) ||
          !std::ranges::equal(answer->segments[1].view(), *small)) {
        ::_exit(2);
      }
      moment();
      wire::OutFrame taken;
      taken.header.kind = wire::FrameKind::taken;
      outbox.append(std::move(taken));
      while (!outbox.empty()) {
        if (!write(outbox)) wait(true);
      }
    }
  }

 private:
  void moment() {
    if (moments_++ != last_) return;
    for (int turn = 0; turn < pause_; ++turn) asm volatile("");
    ::raise(SIGKILL);
  }
  void ring() {
    moment();
    const char bell = 0;
    (void)::send(fd_, &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    moment();
  }
  void switch_reading() {
    std::byte byte{};
    const iovec vector{&byte, 1};
    const auto got = read_socket(fd_, &vector, 1);
    if (!got) ::_exit(1);
    if (got->descriptor < 0) return wait(false);
    ::close(got->descriptor);
    if (!lending_->probe()) ::_exit(4);
    reader_.emplace(memory_, true);
    moment();
  }
  bool write(net::Outbox& outbox) {
    std::array<iovec, 16> pieces;
    const std::size_t count = outbox.gather(pieces);
    if (count == 0) return false;
    const auto put = writer_->write(pieces.data(), static_cast<int>(count), [this] { ring(); });
    if (!put) ::_exit(1);
    outbox.consume(*put);
    moment();
    return *put > 0;
  }
  bool read() {
    if (const auto place = frames_.place()) {
      const std::span<std::byte> part = place->to.first(std::min(kReadAtOnce, place->to.size()));
      if (!lending_->read(place->from, part)) ::_exit(1);
      frames_.took_place(part.size());
      moment();
      return true;
    }
    const wire::FrameReader::Room room = frames_.room();
    const std::array<iovec, 2> vectors{iovec{room.direct.data(), room.direct.size()},
                                       iovec{room.buffer.data(), room.buffer.size()}};
    const auto got = reader_->read(vectors.data(), 2, [this] { ring(); });
    if (!got) ::_exit(1);
    frames_.filled(*got);
    return *got > 0;
  }
  void wait(bool for_room) {
    if (reader_ && !reader_->arm([this] {
          std::array<char, 256> bells;
          (void)!::recv(fd_, bells.data(), bells.size(), MSG_DONTWAIT);
        })) {
      return;
    }
    if (for_room && !writer_->arm()) return;
    moment();
    pollfd waits{fd_, POLLIN, 0};
    ::poll(&waits, 1, -1);
  }

  const int fd_;
  const int last_;
  const int pause_;
  int moments_ = 0;
  std::shared_ptr<SharedMemory> memory_;
  std::unique_ptr<Lending> lending_;
  std::optional<RingWriter> writer_;
  std::optional<RingReader> reader_;
  wire::BlockPool pool_;
  wire::FrameReader frames_{pool_, wire::MessageLimits()};
};

/// Answers each call with its own tensors, which it lends.
class Answering final : public FrameHandler {
 public:
  Result<std::shared_ptr<void>> on_manifest(Session&, wire::FrameKind, wire::ByteView) override {
    return std::shared_ptr<void>();
  }
  Result<void> on_frame(const std::shared_ptr<Session>& session, wire::InFrame frame) override {
    wire::OutFrame answer;
    answer.header.kind = wire::FrameKind::response;
    answer.header.call = frame.header.call;
    for (wire::Block& block : frame.segments) {
      is_right = is_right && std::ranges::equal(block.view(), tensor_of(frame.header.call, block.size()));
      const auto* const data = block.data();
      const std::size_t size = block.size();
      const std::shared_ptr<const void> owner = std::move(block).share();
      lent.push_back(owner);
      answer.segments.push_back({data, size, owner});
    }
    ++calls;
    session->writer().send(answer);
    return {};
  }
  void on_end(Session&, const Error& reason) override { ended.set_value(reason); }

  std::promise<Error> ended;
  std::vector<std::weak_ptr<const void>> lent;
  int calls = 0;
  bool is_right = true;
};

class NoActors final : public ActorFrames {
 public:
  Result<void> on_frame(wire::InFrame) override { return Error(Errc::malformed_payload, "there are no actors"); }
  void end(const Error&, std::function<void()> done) override { done(); }
};

/// Lends to and takes from a peer that kills itself at its moment with that number. Returns how many calls had come.
int lend(int last, int pause) {
  SCOPED_TRACE("killed at moment " + std::to_string(last));
  // Not a pair of sockets: the kernel has to know the process at the other end.
  const test::Folder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "a").c_str(), sizeof address.sun_path - 1);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(listener, generic, sizeof address), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  const pid_t child = ::fork();  // before this process has another thread
  if (child == 0) {
    ::close(listener);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, generic, sizeof address) != 0 || ::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) ::_exit(1);
    LendingDialler(fd, last, pause).run();
  }
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  ::close(listener);
  Answering answering;
  {
    ThreadedExecutor executor({.runners = 1});
    SessionOptions options;
    options.liveness.reset();
    const auto session =
        Session::make({executor, executor.pool(), answering}, {{WorkerId{1}, Incarnation{1}}, "peer", {}}, 1,
                      make_shm_channel(executor, fd, {.ring = kRing, .lends = true}, {}), options);
    session->set_actors(std::make_unique<NoActors>());
    session->start();
    EXPECT_EQ(answering.ended.get_future().get().code(), Errc::peer_down);
  }
  EXPECT_TRUE(answering.is_right);
  for (const auto& lent : answering.lent) EXPECT_TRUE(lent.expired()) << "what was lent is let go of";
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  return answering.calls;
}

TEST(ShmKill, BU1_BU2_AtWhateverMomentOfATransferThePeerIsKilledNothingWrongIsHandedOver) {
  (void)lend(0, 0);  // what a process opens once is open then
  const std::size_t before = open_descriptors();
  int calls = 0;
  for (int last = 1; last < kMoments && !HasFailure(); ++last) {
    calls = std::max(calls, lend(last, static_cast<int>(mix64(static_cast<std::uint64_t>(last)) % 30'000)));
    EXPECT_EQ(open_descriptors(), before) << last;
    EXPECT_FALSE(maps_a_ring()) << last;
  }
  EXPECT_GE(calls, 3) << "the moments reach into several transfers";
}

}  // namespace
}  // namespace caftan::transport::shm_kill_test
