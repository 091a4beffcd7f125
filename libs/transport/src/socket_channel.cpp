#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "caftan/transport/channel.hpp"

namespace caftan::transport {
namespace {

class SocketChannel final : public Channel, public Pollable, public std::enable_shared_from_this<SocketChannel> {
 public:
  SocketChannel(PollingExecutor& executor, int fd, const char* kind) : executor_(executor), fd_(fd), kind_(kind) {}
  ~SocketChannel() override {
    if (fd_ >= 0) ::close(fd_);
  }

  void start(Ready ready) override {
    ready_ = std::move(ready);
    executor_.watch(shared_from_this(), 0);
    watched_ = true;
  }

  void arm(bool read, bool write) override {
    if (closed_.load(std::memory_order_acquire)) return;
    // Zero events still report errors and hang-ups: nobody who has claimed the channel must miss those, they read.
    executor_.rearm(*this, (read ? EPOLLIN : 0U) | (write ? EPOLLOUT : 0U));
  }

  void on_ready(std::uint32_t events) override {
    if (closed_.load(std::memory_order_acquire)) return;
    ready_((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0, (events & EPOLLOUT) != 0);
  }

  Result<std::size_t> read(const iovec* vectors, int count) override {
    for (;;) {
      const ssize_t got =
          count == 1 ? ::recv(fd_, vectors->iov_base, vectors->iov_len, 0) : ::readv(fd_, vectors, count);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got == 0) return Error(Errc::peer_down, "the connection was closed by the peer");
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
      return Error(Errc::peer_down, std::string("reading failed: ") + std::strerror(errno));
    }
  }

  Result<std::size_t> write(const iovec* vectors, int count) override {
    for (;;) {
      ssize_t put;
      if (count == 1) {
        put = ::send(fd_, vectors->iov_base, vectors->iov_len, MSG_NOSIGNAL);
      } else {
        msghdr message{};
        message.msg_iov = const_cast<iovec*>(vectors);
        message.msg_iovlen = static_cast<std::size_t>(count);
        put = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
      }
      if (put >= 0) return static_cast<std::size_t>(put);
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
      return Error(Errc::peer_down, std::string("writing failed: ") + std::strerror(errno));
    }
  }

  void close_write() override { ::shutdown(fd_, SHUT_WR); }
  void break_off() override { ::shutdown(fd_, SHUT_RDWR); }

  void close() override {
    if (closed_.exchange(true)) return;
    // The descriptor itself is closed by the destructor, when no thread can be reading it any more: a number that is
    // free could be somebody else's by then.
    ::shutdown(fd_, SHUT_RDWR);
    if (watched_) executor_.unwatch(*this);
  }

  int fd() const noexcept override { return fd_; }
  const char* kind() const noexcept override { return kind_; }

 private:
  PollingExecutor& executor_;
  const int fd_;
  const char* const kind_;
  Ready ready_;
  bool watched_ = false;
  std::atomic<bool> closed_{false};
};

}  // namespace

std::shared_ptr<Channel> make_socket_channel(PollingExecutor& executor, int fd, const char* kind) {
  return std::make_shared<SocketChannel>(executor, fd, kind);
}

}  // namespace caftan::transport
