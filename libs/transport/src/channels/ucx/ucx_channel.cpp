#include "channels/ucx/ucx_channel.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "channels/socket/socket_address.hpp"
#include "channels/socket/socket_io.hpp"
#include "channels/ucx/ucx_worker.hpp"

namespace caftan::transport {
namespace {

constexpr std::uint64_t kWindow = 4 << 20;  // bytes that the peer may have sent and this side not read
constexpr std::size_t kEarly = 64 * 1024;   // bytes that are kept until both sides have connected
constexpr base::Duration kLookAgain = std::chrono::microseconds(50);
constexpr int kReads = 16;                       // of the socket in one look
constexpr std::size_t kLargestAddress = 16'384;  // bytes of a worker's address
constexpr std::string_view kDialler = "caftan ucx dialler";
constexpr std::string_view kAcceptor = "caftan ucx acceptor";

/// What a record on the socket says; after each kind an u64 follows, least byte first.
enum class RecordKind : std::uint8_t {
  address = 1,  // the size of the address, which follows with its proof
  taken = 2,    // how many bytes of the stream this side has read
  end = 3,      // how many bytes the stream has, which ends
};
constexpr std::size_t kRecord = 9;  // bytes

class UcxChannel final : public Channel, public Pollable, public std::enable_shared_from_this<UcxChannel> {
 public:
  UcxChannel(PollingExecutor& executor, int fd, const UcxChannelOptions& options, std::unique_ptr<UcxWorker> worker)
      : executor_(executor), fd_(fd), options_(options), worker_(std::move(worker)) {}
  ~UcxChannel() override {
    if (epoll_ >= 0) ::close(epoll_);
    if (bell_ >= 0) ::close(bell_);
    if (owns_socket_) ::close(fd_);
  }

  /// Makes the descriptor that the socket, UCX and the bell make readable. Errors: unsupported.
  Result<void> join() {
    const auto refused = [](const char* what) {
      return Error(Errc::unsupported, std::string(what) + ": " + std::strerror(errno));
    };
    const base::LockGuard lock(mutex_);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) return refused("epoll_create1");
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) != 0) return refused("epoll_ctl");
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, worker_->fd(), &event) != 0) return refused("epoll_ctl of UCX's descriptor");
    bell_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (bell_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, bell_, &event) != 0) return refused("eventfd");
    (void)worker_->progress();  // nothing was sent
    owns_socket_ = true;
    return {};
  }

  void start(Ready ready) override {
    ready_ = std::move(ready);
    {
      const base::LockGuard lock(mutex_);
      if (options_.dials) send_address_locked();
    }
    executor_.watch(shared_from_this(), EPOLLIN | EPOLLET);
  }

  void arm(bool read, bool write) override {
    if (closed_.load(std::memory_order_acquire)) return;
    std::uint32_t due = 0;
    {
      const base::LockGuard lock(mutex_);
      armed_ = (read ? kRead : 0) | (write ? kWrite : 0);
      due = take_due_locked();
    }
    post(due);
  }

  /// A thread that sleeps on the descriptor does what the descriptor is readable for itself.
  void on_ready(std::uint32_t) override {
    if (closed_.load(std::memory_order_acquire)) return;
    std::uint32_t due = 0;
    {
      const base::LockGuard lock(mutex_);
      if (sleep_ != Sleep::none) return;
      look_locked();
      due = take_due_locked();
    }
    if (due != 0) ready_((due & kRead) != 0, (due & kWrite) != 0);
  }

  Result<std::size_t> read(const iovec* vectors, int count) override {
    const base::LockGuard lock(mutex_);
    if (broken_) return *broken_;
    if (!is_open_) return ended_locked() ? Result<std::size_t>(end_of_stream()) : Result<std::size_t>(std::size_t{0});
    const auto got = worker_->read(vectors, count);
    if (!got) return ended_locked() ? end_of_stream() : got.error();
    counts_.read += *got;
    if (counts_.read - counts_.reported >= kWindow / 4) {
      send_record_locked(RecordKind::taken, counts_.read);
      counts_.reported = counts_.read;
    }
    if (*got == 0 && ended_locked()) return end_of_stream();
    return got;
  }

  Result<std::size_t> write(const iovec* vectors, int count) override {
    std::uint32_t due = 0;
    Result<std::size_t> put = std::size_t{0};
    {
      const base::LockGuard lock(mutex_);
      if (broken_) return *broken_;
      if (socket_ended_) return end_of_stream();
      if (!is_open_) return keep_locked(vectors, count);
      if (counts_.written - counts_.taken >= kWindow) return put;
      put = worker_->write(vectors, count, kWindow - (counts_.written - counts_.taken));
      if (put) counts_.written += *put;
      if (!worker_->is_sent()) progress_locked();
      // Bytes may have come meanwhile.
      due = take_due_locked();
      wake_sleeper_locked();
    }
    post(due);
    return put;
  }

  bool has_unread() const override {
    const base::LockGuard lock(mutex_);
    // What has come and was not looked at yet counts, too: all threads may be computing (SE-30).
    pollfd come{epoll_, POLLIN, 0};
    return (is_open_ && worker_->has_data()) || ::poll(&come, 1, 0) > 0;
  }

  void close_write() override {
    const base::LockGuard lock(mutex_);
    is_ending_ = true;
    end_if_sent_locked();
  }
  void break_off() override {
    const base::LockGuard lock(mutex_);
    counts_.is_given_up = true;
    ::shutdown(fd_, SHUT_RDWR);
    wake_sleeper_locked();
  }

  void close() override {
    if (closed_.exchange(true)) return;
    // Socket and worker stay until no thread can be using them any more: the destructor ends them.
    ::shutdown(fd_, SHUT_RDWR);
    if (ready_) executor_.unwatch(*this);
  }

  int fd() const noexcept override { return epoll_; }
  bool try_sleep() override {
    std::uint32_t due = 0;
    bool sleeps = false;
    {
      const base::LockGuard lock(mutex_);
      look_locked();
      due = take_due_locked();  // room may have come
      // What is not reported, a thread that sleeps would not see.
      sleeps = !is_readable_locked() && looking_.is_reported;
      if (sleeps) sleep_ = Sleep::asleep;
    }
    post(due);
    return sleeps;
  }
  void wake(bool) override {
    std::uint32_t due = 0;
    {
      const base::LockGuard lock(mutex_);
      std::uint64_t rings = 0;
      if (std::exchange(sleep_, Sleep::none) == Sleep::rung) (void)!::read(bell_, &rings, sizeof rings);
      look_locked();
      due = take_due_locked();
    }
    post(due);
  }

  const char* kind() const noexcept override { return "ucx"; }
  std::string peer_place() const override { return place_of_peer(fd_); }

 private:
  static constexpr std::uint32_t kRead = 1;
  static constexpr std::uint32_t kWrite = 2;

  void post(std::uint32_t due) {
    if (due == 0) return;
    executor_.post([self = shared_from_this(), due] {
      if (!self->closed_) self->ready_((due & kRead) != 0, (due & kWrite) != 0);
    });
  }

  // ---- what is possible

  /// UX-6: what was sent before the end of the stream is read before the stream ends.
  bool ended_locked() CAFTAN_REQUIRES(mutex_) {
    return socket_ended_ && (counts_.is_given_up || !counts_.size || counts_.read >= *counts_.size);
  }
  bool is_readable_locked() CAFTAN_REQUIRES(mutex_) {
    return broken_ || (is_open_ && (worker_->has_data() || worker_->failure())) || ended_locked();
  }
  bool is_writable_locked() CAFTAN_REQUIRES(mutex_) {
    if (broken_ || socket_ended_ || worker_->failure()) return true;
    return is_open_ ? counts_.written - counts_.taken < kWindow && worker_->has_room() : early_.size() < kEarly;
  }
  /// Returns what `arm` asked for and is possible now, and asks for it no more.
  std::uint32_t take_due_locked() CAFTAN_REQUIRES(mutex_) {
    std::uint32_t due = 0;
    if ((armed_ & kRead) != 0 && is_readable_locked()) due |= kRead;
    if ((armed_ & kWrite) != 0 && is_writable_locked()) due |= kWrite;
    armed_ &= ~due;
    return due;
  }

  /// Takes what the socket and UCX have, until their descriptors report what comes.
  void look_locked() CAFTAN_REQUIRES(mutex_) {
    progress_locked(socket_ended_ || broken_ || read_socket_locked());
    if (const Error* const failure = worker_->failure(); failure && !broken_ && !worker_->has_data())
      broken_ = *failure;
    end_if_sent_locked();
  }

  /// Lets UCX do what is to be done, and looks again where the descriptor does not report what comes.
  /// @param is_read  the descriptor reports what the socket has
  void progress_locked(bool is_read = true) CAFTAN_REQUIRES(mutex_) {
    looking_.is_reported = worker_->progress() && is_read;
    if (looking_.is_reported || std::exchange(looking_.is_due, true)) return;
    executor_.post_at(executor_.clock().now() + kLookAgain, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self || self->closed_) return;
      std::uint32_t due = 0;
      {
        const base::LockGuard lock(self->mutex_);
        self->looking_.is_due = false;
        self->look_locked();
        due = self->take_due_locked();
        self->wake_sleeper_locked();
      }
      if (due != 0) self->ready_((due & kRead) != 0, (due & kWrite) != 0);
    });
  }

  /// UX-5: what this thread has taken from UCX, the descriptor does not report to the thread that sleeps.
  void wake_sleeper_locked() CAFTAN_REQUIRES(mutex_) {
    if (sleep_ != Sleep::asleep || !is_readable_locked()) return;
    sleep_ = Sleep::rung;
    const std::uint64_t one = 1;
    (void)!::write(bell_, &one, sizeof one);
  }

  void end_if_sent_locked() CAFTAN_REQUIRES(mutex_) {
    if (!is_ending_ || !early_.empty() || !worker_->is_sent()) return;
    is_ending_ = false;
    if (is_open_) send_record_locked(RecordKind::end, counts_.written);
    ::shutdown(fd_, SHUT_WR);
  }

  /// Takes bytes of the stream before UCX can.
  std::size_t keep_locked(const iovec* vectors, int count) CAFTAN_REQUIRES(mutex_) {
    const std::size_t before = early_.size();
    for (int i = 0; i < count && early_.size() < kEarly; ++i) {
      const wire::ByteView bytes(static_cast<const std::byte*>(vectors[i].iov_base), vectors[i].iov_len);
      wire::append(early_, bytes.first(std::min(bytes.size(), kEarly - early_.size())));
    }
    return early_.size() - before;
  }

  void break_locked(Error error) CAFTAN_REQUIRES(mutex_) {
    if (!broken_) broken_ = std::move(error);
    ::shutdown(fd_, SHUT_RDWR);
  }

  // ---- the socket

  void send_locked(wire::ByteView bytes) CAFTAN_REQUIRES(mutex_) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(bytes.size())) return;
    // The peer reads its socket with each look, so that only a peer that has stopped leaves no room for a record.
    if (sent >= 0 || (errno != EPIPE && errno != ECONNRESET))
      break_locked(Error(Errc::peer_down, "the peer does not read the records of channel ucx"));
  }
  static void append_record(wire::Bytes& to, RecordKind kind, std::uint64_t value) {
    to.push_back(static_cast<std::byte>(kind));
    for (int i = 0; i < 8; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void send_record_locked(RecordKind kind, std::uint64_t value) CAFTAN_REQUIRES(mutex_) {
    wire::Bytes bytes;
    append_record(bytes, kind, value);
    send_locked(bytes);
  }

  /// Returns what proves an address of one side (UX-2).
  Result<net::Proof> proof_of(bool dialler, wire::ByteView address) const {
    const net::Secret secret(std::string_view(reinterpret_cast<const char*>(options_.key.data()), options_.key.size()));
    return net::make_proof(secret, dialler ? kDialler : kAcceptor, address);
  }
  void send_address_locked() CAFTAN_REQUIRES(mutex_) {
    const auto address = worker_->address();
    if (!address) return break_locked(address.error());
    const auto proof = proof_of(options_.dials, *address);
    if (!proof) return break_locked(proof.error());
    wire::Bytes bytes;
    append_record(bytes, RecordKind::address, address->size());
    wire::append(bytes, *proof);
    wire::append(bytes, *address);
    send_locked(bytes);
  }

  /// Returns false if there may be more, so that a peer that sends records without end holds no thread.
  bool read_socket_locked() CAFTAN_REQUIRES(mutex_) {
    std::byte bytes[4096];
    for (int reads = 0; reads < kReads; ++reads) {
      const ssize_t got = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
      if (got <= 0) {
        socket_ended_ = true;
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd_, nullptr);  // the end of the socket would keep the descriptor readable
        return true;
      }
      wire::append(unread_, {bytes, static_cast<std::size_t>(got)});
      if (auto taken = take_records_locked(); !taken) {
        break_locked(taken.error());
        return true;
      }
    }
    return false;
  }

  /// Errors: malformed_payload, not_authenticated.
  Result<void> take_records_locked() CAFTAN_REQUIRES(mutex_) {
    std::size_t at = 0;
    while (unread_.size() - at >= kRecord) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(unread_[at + 1 + i]) << (8 * i);
      const auto kind = static_cast<RecordKind>(unread_[at]);
      if (kind == RecordKind::address) {
        if (is_open_ || value == 0 || value > kLargestAddress)
          return Error(Errc::malformed_payload, "channel ucx: an address of " + std::to_string(value) + " bytes");
        const std::size_t size = sizeof(net::Proof) + value;
        if (unread_.size() - at - kRecord < size) break;
        if (auto opened = open_locked(wire::ByteView(unread_).subspan(at + kRecord, size)); !opened) return opened;
        at += kRecord + size;
        continue;
      }
      if (auto taken = take_record_locked(kind, value); !taken) return taken;
      at += kRecord;
    }
    unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }

  Result<void> take_record_locked(RecordKind kind, std::uint64_t value) CAFTAN_REQUIRES(mutex_) {
    const auto malformed = [&](const char* what) {
      return Error(Errc::malformed_payload, std::string("channel ucx: ") + what + " " + std::to_string(value));
    };
    if (kind == RecordKind::taken && is_open_) {
      if (value < counts_.taken || value > counts_.written) return malformed("the peer has read byte");
      counts_.taken = value;
      return {};
    }
    if (kind == RecordKind::end && is_open_) {
      if (counts_.size || value < counts_.read) return malformed("the stream ends at byte");
      counts_.size = value;
      return {};
    }
    return malformed("no record of this kind may come here, with");
  }

  /// UX-2: only an address that the peer has proven is given to UCX.
  Result<void> open_locked(wire::ByteView proven) CAFTAN_REQUIRES(mutex_) {
    const wire::ByteView address = proven.subspan(sizeof(net::Proof));
    const auto expected = proof_of(!options_.dials, address);
    if (!expected) return expected.error();
    if (!net::equal_in_constant_time(*expected, proven.first(sizeof(net::Proof))))
      return Error(Errc::not_authenticated, "channel ucx: the peer's address is not the one that the peer has sent");
    if (auto connected = worker_->connect(address); !connected) return connected;
    is_open_ = true;
    if (!options_.dials) send_address_locked();
    const iovec early{early_.data(), early_.size()};
    const auto put = worker_->write(&early, 1, early_.size());  // which fits into its memory
    if (!put) return put.error();
    counts_.written = *put;
    early_ = {};
    return {};
  }

  /// A thread that sleeps on the descriptor.
  enum class Sleep : std::uint8_t { none, asleep, rung };
  struct Counts {
    std::uint64_t written = 0;            // bytes of the stream
    std::uint64_t taken = 0;              // of them that the peer has read, as far as is known
    std::uint64_t read = 0;               // bytes of the peer's stream
    std::uint64_t reported = 0;           // of them that the peer knows to be read
    std::optional<std::uint64_t> size{};  // of the peer's stream, once it has ended
    bool is_given_up = false;             // what has not come is not waited for
  };
  struct Looking {
    bool is_due = false;      // a task is to look again
    bool is_reported = true;  // the descriptor reports what comes
  };

  PollingExecutor& executor_;
  const int fd_;
  const UcxChannelOptions options_;
  int epoll_ = -1;
  int bell_ = -1;  // wakes the thread that sleeps on epoll_
  bool owns_socket_ = false;
  Ready ready_;
  std::atomic<bool> closed_{false};

  mutable base::Mutex mutex_;
  const std::unique_ptr<UcxWorker> worker_;  // used with the mutex
  std::uint32_t armed_ CAFTAN_GUARDED_BY(mutex_) = 0;
  bool is_open_ CAFTAN_GUARDED_BY(mutex_) = false;  // both sides have the other's address
  Sleep sleep_ CAFTAN_GUARDED_BY(mutex_) = Sleep::none;
  Looking looking_ CAFTAN_GUARDED_BY(mutex_);
  bool is_ending_ CAFTAN_GUARDED_BY(mutex_) = false;     // the end is sent once all bytes are
  bool socket_ended_ CAFTAN_GUARDED_BY(mutex_) = false;  // the peer sends no record any more
  std::optional<Error> broken_ CAFTAN_GUARDED_BY(mutex_);
  wire::Bytes unread_ CAFTAN_GUARDED_BY(mutex_);  // of the socket: less than a record
  wire::Bytes early_ CAFTAN_GUARDED_BY(mutex_);   // of this side's stream, while it is not open
  Counts counts_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace

Result<void> check_ucx() {
  const auto worker = UcxWorker::open();
  return worker ? Result<void>() : Result<void>(worker.error());
}

Result<std::shared_ptr<Channel>> make_ucx_channel(PollingExecutor& executor, int fd, const UcxChannelOptions& options) {
  auto worker = UcxWorker::open();
  if (!worker) return worker.error();
  auto channel = std::make_shared<UcxChannel>(executor, fd, options, *std::move(worker));
  if (auto joined = channel->join(); !joined) return joined.error();
  return std::shared_ptr<Channel>(channel);
}

}  // namespace caftan::transport
