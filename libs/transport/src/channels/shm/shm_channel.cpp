#include "channels/shm/shm_channel.hpp"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "channels/shm/lending.hpp"
#include "channels/shm/reading_leave.hpp"
#include "channels/shm/ring.hpp"
#include "channels/shm/ring_demand.hpp"
#include "channels/shm/shm_socket.hpp"
#include "channels/socket/socket_address.hpp"
#include "channels/socket/socket_io.hpp"

namespace caftan::transport {
namespace {

constexpr int kRingsLeft = 32;            // bytes of bells that runners leave in the socket
constexpr std::size_t kMostRings = 4096;  // of them that are taken away at once

std::size_t bytes_of(const iovec* vectors, int count) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += vectors[i].iov_len;
  return bytes;
}

class ShmChannel final : public Channel, public Pollable, public std::enable_shared_from_this<ShmChannel> {
 public:
  ShmChannel(PollingExecutor& executor, int fd, const ShmChannelOptions& options, SharedMemoryBudget::Share share)
      : executor_(executor),
        fd_(fd),
        options_(options),
        share_(std::move(share)),
        demand_(options.frames, executor.clock().now()) {
    if (!options.lends && !options.why_not_lent.empty()) notes_.both = note_on_rings(options.why_not_lent);
  }
  ~ShmChannel() override { ::close(fd_); }

  void start(Ready ready) override {
    ready_ = std::move(ready);
    executor_.watch(shared_from_this(), EPOLLET);
  }

  // As SocketChannel::arm for what is on the socket. What is in a ring is looked at behind its bell (DP-3).
  void arm(bool read, bool write) override {
    if (closed_.load(std::memory_order_acquire)) return;
    RingReader* const in = in_.load(std::memory_order_acquire);
    RingWriter* const out = out_.load(std::memory_order_acquire);
    const bool listens = read || (write && out);
    const std::uint32_t events = (listens ? EPOLLIN | EPOLLRDHUP : 0U) | (write && !out ? EPOLLOUT : 0U) | EPOLLET;
    const bool changed = std::exchange(events_, events) != events;
    const std::uint32_t wanted = (read ? kReadArmed : 0) | (write && out ? kRoomArmed : 0);
    const std::uint32_t before = state_.exchange(wanted);
    const bool unread = read && !in && (before & (kUnread | kEnded)) != 0;
    // Bells that lie in the socket are reported once more when the events change, so they are taken away first.
    const bool has_bytes = read && in && !begin_sleep(*in, changed ? 0 : kRingsLeft);
    if (changed || unread || (write && !out)) executor_.rearm(*this, events);
    if (has_bytes) post(take(kReadArmed), false);
    if (write && out && (!out->arm() || socket_ended_)) post(false, take(kRoomArmed));
  }

  void on_ready(std::uint32_t events) override {
    if (closed_.load(std::memory_order_acquire)) return;
    const bool hung_up = (events & (EPOLLHUP | EPOLLERR)) != 0;
    const bool ended = hung_up || (events & EPOLLRDHUP) != 0;
    if (ended) socket_ended_ = true;
    bool readable = false;
    if (ended || (events & EPOLLIN) != 0) {
      RingReader* const in = in_.load(std::memory_order_acquire);
      readable = in ? on_ring(*in) : on_bytes(hung_up, ended);
    }
    const bool writable = room_came() || (events & EPOLLOUT) != 0;
    if (readable || writable) ready_(readable, writable);
  }

  Result<std::size_t> read(const iovec* vectors, int count) override {
    if (RingReader* const in = in_.load(std::memory_order_acquire)) return read_ring(*in, vectors, count);
    // Cleared before reading: bytes that arrive behind the read bytes set it again.
    state_.fetch_and(~kUnread, std::memory_order_acq_rel);
    const auto got = read_socket(fd_, vectors, count);
    if (!got) return got.error();
    if (got->descriptor >= 0) {
      if (auto switched = switch_reading(got->descriptor); !switched) {
        break_off();
        return switched.error();
      }
    } else if (got->bytes > 0) {
      demand_.note(got->bytes);
      if (got->bytes == bytes_of(vectors, count)) state_.fetch_or(kUnread, std::memory_order_release);
    }
    // The peer could not ring while these bytes filled the socket, and a switch takes the place of a bell.
    post(false, room_came());
    if (got->descriptor >= 0 && got->bytes == 0) {
      return read_ring(*in_.load(std::memory_order_relaxed), vectors, count);
    }
    return got->bytes;
  }

  Result<std::size_t> write(const iovec* vectors, int count) override {
    if (RingWriter* const out = out_.load(std::memory_order_acquire)) return write_ring(*out, vectors, count);
    const base::LockGuard lock(socket_mutex_);
    demand_.note(bytes_of(vectors, count));
    if (!out_.load(std::memory_order_relaxed) && wants_rings_locked()) switch_writing_locked();
    if (RingWriter* const out = out_.load(std::memory_order_relaxed)) return write_ring(*out, vectors, count);
    return write_to_socket(fd_, vectors, count);
  }

  bool has_unread() const override {
    if (RingReader* const in = in_.load(std::memory_order_acquire)) return in->has_bytes();
    int bytes = 0;
    return ::ioctl(fd_, FIONREAD, &bytes) == 0 && bytes > 0;
  }

  bool try_sleep() override {
    RingReader* const in = in_.load(std::memory_order_acquire);
    return !in || begin_sleep(*in, 0);
  }

  void wake(bool readable) override {
    RingReader* const in = in_.load(std::memory_order_acquire);
    if (!in) return;
    in->disarm();
    if (readable) take_rings();
    if (room_came()) ready_(false, true);
  }

  Look look() const override {
    RingReader* const in = in_.load(std::memory_order_acquire);
    if (!in) return Look::unable;
    return in->has_bytes() || socket_ended_ ? Look::something : Look::nothing;
  }

  void stay_awake() override {
    RingReader& in = *in_.load(std::memory_order_acquire);
    // Its byte stays in the socket, and is taken away before the next sleep.
    if (in.is_rung()) bells_.left.fetch_add(1, std::memory_order_relaxed);
    in.disarm();
  }

  bool beat() override {
    RingWriter* const out = out_.load(std::memory_order_acquire);
    if (!out) return false;
    out->beat();
    if (bells_.is_due.exchange(false)) ring();
    return true;
  }

  std::uint64_t beats() const override {
    RingReader* const in = in_.load(std::memory_order_acquire);
    return in ? in->beats() : 0;
  }

  bool lends() const override { return out_.load(std::memory_order_acquire) && lending_ && lending_->peer_reads(); }

  Result<void> read_lent(std::uint64_t from, std::span<std::byte> to) override {
    if (!in_.load(std::memory_order_acquire) || !lending_) return Channel::read_lent(from, to);
    return lending_->read(from, to);
  }

  void close_write() override { ::shutdown(fd_, SHUT_WR); }
  void break_off() override { ::shutdown(fd_, SHUT_RDWR); }

  void close() override {
    if (closed_.exchange(true)) return;
    if (out_.load(std::memory_order_acquire) && lending_) lending_->end();
    // Descriptor and rings stay until no thread can be using them any more: the destructor ends them.
    ::shutdown(fd_, SHUT_RDWR);
    if (ready_) executor_.unwatch(*this);
  }

  int fd() const noexcept override { return fd_; }
  const char* kind() const noexcept override { return refused_.load(std::memory_order_relaxed) ? "unix" : "shm"; }
  std::string note() const override {
    const base::LockGuard lock(socket_mutex_);
    if (!notes_.both.empty()) return notes_.both;
    std::string text = notes_.to_peer;
    if (text.empty() && lending_ && lending_->peer_refuses())
      text = note_to_peer("it cannot read this process's memory");
    return text + (text.empty() || notes_.from_peer.empty() ? "" : "; ") + notes_.from_peer;
  }
  std::string peer_place() const override { return place_of_peer(fd_); }

 private:
  static constexpr std::uint32_t kReadArmed = 1;  // bytes are to be reported
  static constexpr std::uint32_t kUnread = 2;     // there may be bytes on the socket that no later edge reports
  static constexpr std::uint32_t kEnded = 4;      // the same for the end of the socket
  static constexpr std::uint32_t kRoomArmed = 8;  // room in the ring is to be reported

  /// Takes back what `arm` asked for, and returns whether this thread is the one to report it.
  bool take(std::uint32_t armed) { return (state_.fetch_and(~armed, std::memory_order_acq_rel) & armed) != 0; }

  void post(bool readable, bool writable) {
    if (!readable && !writable) return;
    executor_.post([self = shared_from_this(), readable, writable] {
      if (!self->closed_) self->ready_(readable, writable);
    });
  }

  // ---- waiting

  /// An edge of the socket while it carries the stream. Returns whether `arm` asked for it.
  bool on_bytes(bool hung_up, bool ended) {
    // When the end of the stream comes together with bytes, the kernel reports no second edge for it.
    const std::uint32_t seen = kUnread | (ended ? kEnded : 0);
    std::uint32_t before = state_.load(std::memory_order_relaxed);
    while (!state_.compare_exchange_weak(before, (before | seen) & ~kReadArmed, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
    }
    return hung_up || (before & kReadArmed) != 0;
  }

  /// An edge of the socket while it carries bells. Each bell is an edge of its own, so a runner leaves them there for a
  /// while: taking them away is a system call.
  bool on_ring(RingReader& in) {
    bells_.left.fetch_add(1, std::memory_order_relaxed);
    if ((state_ & kReadArmed) == 0) return false;
    return (in.is_rung() || in.has_bytes() || socket_ended_) && take(kReadArmed);
  }

  /// Begins to wait for bytes of the ring, unless there is something. Threads: the one that has claimed the channel, or
  /// the caller of `arm`. @param leave  so many bells may stay in the socket
  bool begin_sleep(RingReader& in, int leave) {
    const int rings = std::max(bells_.left.load(std::memory_order_relaxed), in.is_rung() ? 1 : 0);
    const bool asleep = in.arm([&] {
      if (rings > leave) take_rings();
    });
    post(false, room_came());  // its bell may be among those that were taken away
    return asleep && !socket_ended_;
  }

  /// Takes bells out of the socket: they have no content, and all that they may be about is looked at afterwards.
  void take_rings() {
    bells_.left.store(0, std::memory_order_relaxed);
    char bytes[kMostRings];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    const bool none = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (got <= 0 && !none) socket_ended_ = true;
    if (got == sizeof bytes) bells_.left.store(1, std::memory_order_relaxed);
  }

  /// Returns whether room of the ring is to be reported now. A bell that was rung is a reason in any case: the reader
  /// may have rung for room that was taken since it looked, and rings no second time for the same sleep.
  bool room_came() {
    if ((state_ & kRoomArmed) == 0) return false;
    RingWriter* const out = out_.load(std::memory_order_acquire);
    return out && (out->is_rung() || out->has_room() || socket_ended_) && take(kRoomArmed);
  }

  // ---- rings

  void ring() {
    const char bell = 0;
    const ssize_t sent = ::send(fd_, &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    // A socket that is full has bells that the peer has not taken away yet. If it has looked at all that these were
    // about, nothing wakes it: so this bell is rung again with the next beat.
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) bells_.is_due = true;
  }

  /// Reports room to the peer's writer. As long as this side has not switched, a byte on the socket would be one of the
  /// stream. The peer has sent its memory then, so this side can switch, and that wakes the peer as well.
  void ring_for_room() {
    if (out_.load(std::memory_order_acquire)) return ring();
    const base::LockGuard lock(socket_mutex_);
    if (!out_.load(std::memory_order_relaxed)) return switch_writing_locked();
    ring();
  }

  Result<std::size_t> read_ring(RingReader& in, const iovec* vectors, int count) {
    // Looked at first: what was written before the socket's end is read before the stream ends.
    const bool ended = socket_ended_;
    auto got = in.read(vectors, count, [this] { ring_for_room(); });
    if (!got) {
      break_off();
      return got;
    }
    if (*got == 0 && ended) return end_of_stream();
    return got;
  }

  Result<std::size_t> write_ring(RingWriter& out, const iovec* vectors, int count) {
    if (socket_ended_) return end_of_stream();
    auto put = out.write(vectors, count, [this] { ring(); });
    if (!put) break_off();  // the thread that reads finds the end of the stream
    return put;
  }

  // ---- switching

  /// Returns whether this side is to write into a ring from now on.
  bool wants_rings_locked() CAFTAN_REQUIRES(socket_mutex_) {
    if (memory_) return true;
    return options_.makes_memory && !refused_ && demand_.wants(executor_.clock());
  }

  /// Sends the memory as the last byte of this direction on the socket; without memory for it, all stays on the socket.
  void switch_writing_locked() CAFTAN_REQUIRES(socket_mutex_) {
    if (!memory_) {
      auto made = SharedMemory::make(two_rings(options_.ring));
      if (!made) return stay_on_socket_locked(made.error().text());
      memory_ = std::make_shared<SharedMemory>(*std::move(made));
      begin_lending_locked();
    }
    switch (send_descriptor(fd_, memory_->fd())) {
      case Sent::yes:
        break;
      case Sent::full:
        return;  // tried again with the next write
      case Sent::refused:
        // Without memory of its own, this side could not ring any more.
        if (!options_.makes_memory) break_off();
        stay_on_socket_locked(std::string("its memory cannot be sent: ") + std::strerror(errno));
        lending_ = nullptr;
        memory_ = nullptr;
        return;
    }
    if (!options_.makes_memory) memory_->close_descriptor();
    writer_ = std::make_unique<RingWriter>(memory_, !options_.makes_memory);
    out_.store(writer_.get(), std::memory_order_release);
  }

  void stay_on_socket_locked(const std::string& why) CAFTAN_REQUIRES(socket_mutex_) {
    refused_ = true;
    set_note_locked(notes_.both, note_on_socket(why));
  }

  /// Takes the descriptor that came with the last byte of the stream on the socket.
  Result<void> switch_reading(int descriptor) {
    const base::LockGuard lock(socket_mutex_);
    if (options_.makes_memory) {
      const bool same = memory_ && memory_->is_same(descriptor);
      ::close(descriptor);
      if (!same) return Error(Errc::malformed_payload, "the peer sent memory of its own, not back what it was sent");
      memory_->close_descriptor();
    } else {
      auto taken = SharedMemory::take(descriptor, two_rings(kSmallestRing), two_rings(options_.ring));
      if (!taken) return taken.error();
      if (taken->size() % (2 * kRingHeader) != 0) {
        return Error(Errc::malformed_payload, "shared memory of the peer: rings that are no whole pages");
      }
      memory_ = std::make_shared<SharedMemory>(*std::move(taken));
      begin_lending_locked();
    }
    if (lending_) {
      if (const auto probed = lending_->probe(); !probed) {
        set_note_locked(notes_.from_peer, note_from_peer(probed.error().text()));
      }
    }
    reader_ = std::make_unique<RingReader>(memory_, options_.makes_memory);
    in_.store(reader_.get(), std::memory_order_release);
    if (!options_.makes_memory) switch_writing_locked();
    return {};
  }

  // ---- lending

  /// Shows the peer where to read this process's memory, before the peer has the memory of the rings or has it back.
  void begin_lending_locked() CAFTAN_REQUIRES(socket_mutex_) {
    if (!options_.lends) return;
    const auto process = process_of_peer(fd_);
    if (!process) return set_note_locked(notes_.both, note_on_rings(process.error().text()));
    lending_ =
        std::make_unique<Lending>(RingPlace(*memory_, !options_.makes_memory).header,
                                  RingPlace(*memory_, options_.makes_memory).header, *process, leave_of_process());
    if (const auto shown = lending_->show(); !shown) {
      set_note_locked(notes_.to_peer, note_to_peer(shown.error().text()));
    }
  }

  /// Bells that lie in the socket.
  struct Bells {
    std::atomic<int> left{0};         // about how many are there for this side
    std::atomic<bool> is_due{false};  // the socket was full when the peer's was to be rung
  };

  // ---- notes

  /// What is lacking, of both directions or of one.
  struct Notes {
    std::string both;
    std::string to_peer;
    std::string from_peer;
  };
  static std::string note_to_peer(const std::string& why) { return "large tensors to it go through the ring: " + why; }
  static std::string note_from_peer(const std::string& why) {
    return "large tensors from it go through the ring: " + why;
  }

  void set_note_locked(std::string& note, std::string text) CAFTAN_REQUIRES(socket_mutex_) {
    note = std::move(text);
    if (options_.note) executor_.post([report = options_.note, note] { report(note); });
  }

  PollingExecutor& executor_;
  const int fd_;
  const ShmChannelOptions options_;
  const SharedMemoryBudget::Share share_;
  Ready ready_;
  std::uint32_t events_ = 0;  // the events that the kernel was asked for; written by `arm`
  // These two are read and written in one order for all threads: `arm` sets what is armed and then looks for the end,
  // `on_ready` sets the end and then looks at what is armed, and one of the two must find what the other has set.
  std::atomic<std::uint32_t> state_{0};
  std::atomic<bool> socket_ended_{false};  // the peer writes nothing more, neither bytes nor bells
  std::atomic<bool> closed_{false};
  Bells bells_;
  std::atomic<bool> refused_{false};  // there is no memory for rings
  RingDemand demand_;

  mutable base::Mutex socket_mutex_;  // held while bytes of the stream are written to the socket, and by switches
  Notes notes_ CAFTAN_GUARDED_BY(socket_mutex_);
  std::shared_ptr<SharedMemory> memory_ CAFTAN_GUARDED_BY(socket_mutex_);
  std::unique_ptr<RingWriter> writer_ CAFTAN_GUARDED_BY(socket_mutex_);
  std::unique_ptr<RingReader> reader_;
  std::unique_ptr<Lending> lending_;       // set before both of these
  std::atomic<RingWriter*> out_{nullptr};  // set once, when this side has switched
  std::atomic<RingReader*> in_{nullptr};   // set once, when the peer has
};

}  // namespace

std::string note_on_socket(const std::string& why) { return "not over shm: " + why; }
std::string note_on_rings(const std::string& why) { return "large tensors go through the rings: " + why; }

std::shared_ptr<Channel> make_shm_channel(PollingExecutor& executor, int fd, const ShmChannelOptions& options,
                                          SharedMemoryBudget::Share share) {
  return std::make_shared<ShmChannel>(executor, fd, options, std::move(share));
}

}  // namespace caftan::transport
