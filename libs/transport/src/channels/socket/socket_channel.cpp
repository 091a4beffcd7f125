#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "caftan/transport/channel.hpp"
#include "channels/socket/socket_address.hpp"
#include "channels/socket/socket_io.hpp"

namespace caftan::transport {
namespace {

class SocketChannel final : public Channel, public Pollable, public std::enable_shared_from_this<SocketChannel> {
 public:
  SocketChannel(PollingExecutor& executor, int fd, const char* kind, std::string note)
      : executor_(executor), fd_(fd), kind_(kind), note_(std::move(note)) {}
  ~SocketChannel() override {
    if (fd_ >= 0) ::close(fd_);
  }

  void start(Ready ready) override {
    ready_ = std::move(ready);
    executor_.watch(shared_from_this(), EPOLLET);
    watched_ = true;
  }

  // The kernel reports each edge without being asked again; this class turns that into one report per arm. So arming
  // costs a system call only if bytes may lie unread, if room is asked for, or if the events asked for change.
  void arm(bool read, bool write) override {
    if (closed_.load(std::memory_order_acquire)) return;
    // Hang-ups are reported even if no event is asked for; a thread that has claimed the channel finds them by reading.
    const std::uint32_t events = (read ? EPOLLIN | EPOLLRDHUP : 0U) | (write ? EPOLLOUT : 0U) | EPOLLET;
    const bool changed = std::exchange(events_, events) != events;
    const std::uint32_t before = state_.exchange(read ? kArmed : 0, std::memory_order_acq_rel);
    const bool unread = read && (before & (kUnread | kEnded)) != 0;
    if (!changed && !unread && !write) return;
    executor_.rearm(*this, events);  // reports what is there already
  }

  void on_ready(std::uint32_t events) override {
    if (closed_.load(std::memory_order_acquire)) return;
    const bool hung_up = (events & (EPOLLHUP | EPOLLERR)) != 0;
    bool readable = false;
    if (hung_up || (events & (EPOLLIN | EPOLLRDHUP)) != 0) {
      // When the end of the stream comes together with bytes, the kernel reports no second edge for it.
      const std::uint32_t seen = kUnread | (hung_up || (events & EPOLLRDHUP) != 0 ? kEnded : 0);
      std::uint32_t before = state_.load(std::memory_order_relaxed);
      while (!state_.compare_exchange_weak(before, (before | seen) & ~kArmed, std::memory_order_acq_rel,
                                           std::memory_order_relaxed)) {
      }
      readable = hung_up || (before & kArmed) != 0;
    }
    const bool writable = (events & EPOLLOUT) != 0;
    if (readable || writable) ready_(readable, writable);
  }

  Result<std::size_t> read(const iovec* vectors, int count) override {
    std::size_t room = 0;
    for (int i = 0; i < count; ++i) room += vectors[i].iov_len;
    // Cleared before reading: bytes that arrive behind the read bytes set it again.
    state_.fetch_and(~kUnread, std::memory_order_acq_rel);
    for (;;) {
      const ssize_t got =
          count == 1 ? ::recv(fd_, vectors->iov_base, vectors->iov_len, 0) : ::readv(fd_, vectors, count);
      if (got > 0) {
        if (static_cast<std::size_t>(got) == room) state_.fetch_or(kUnread, std::memory_order_release);
        return static_cast<std::size_t>(got);
      }
      if (got == 0) return end_of_stream();
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
      return Error(Errc::peer_down, std::string("reading failed: ") + std::strerror(errno));
    }
  }

  Result<std::size_t> write(const iovec* vectors, int count) override { return write_to_socket(fd_, vectors, count); }

  bool has_unread() const override {
    int bytes = 0;
    return ::ioctl(fd_, FIONREAD, &bytes) == 0 && bytes > 0;
  }

  void close_write() override { ::shutdown(fd_, SHUT_WR); }
  void break_off() override { ::shutdown(fd_, SHUT_RDWR); }

  void close() override {
    if (closed_.exchange(true)) return;
    // Only the connection is ended here. The destructor closes the descriptor, when no thread can be reading it any
    // more: otherwise another file might get its number meanwhile.
    ::shutdown(fd_, SHUT_RDWR);
    if (watched_) executor_.unwatch(*this);
  }

  int fd() const noexcept override { return fd_; }
  const char* kind() const noexcept override { return kind_; }
  std::string note() const override { return note_; }
  std::string peer_place() const override { return place_of_peer(fd_); }

 private:
  static constexpr std::uint32_t kArmed = 1;   // the next edge is reported
  static constexpr std::uint32_t kUnread = 2;  // there may be bytes that no later edge reports
  static constexpr std::uint32_t kEnded = 4;   // there may be an end of the stream that no later edge reports

  PollingExecutor& executor_;
  const int fd_;
  const char* const kind_;
  const std::string note_;
  Ready ready_;
  bool watched_ = false;
  std::uint32_t events_ = 0;  // the events that the kernel was asked for; written by `arm`
  std::atomic<std::uint32_t> state_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace

Result<std::size_t> write_to_socket(int fd, const iovec* vectors, int count) {
  for (;;) {
    ssize_t put;
    if (count == 1) {
      put = ::send(fd, vectors->iov_base, vectors->iov_len, MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(vectors);
      message.msg_iovlen = static_cast<std::size_t>(count);
      put = ::sendmsg(fd, &message, MSG_NOSIGNAL);
    }
    if (put >= 0) return static_cast<std::size_t>(put);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    return Error(Errc::peer_down, std::string("writing failed: ") + std::strerror(errno));
  }
}

Error end_of_stream() { return Error(Errc::peer_down, "the connection was closed by the peer"); }

std::shared_ptr<Channel> make_socket_channel(PollingExecutor& executor, int fd, const char* kind, std::string note) {
  return std::make_shared<SocketChannel>(executor, fd, kind, std::move(note));
}

}  // namespace caftan::transport
