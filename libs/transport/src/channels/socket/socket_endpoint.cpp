#include "channels/socket/socket_endpoint.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "caftan/base/mutex.hpp"
#include "channels/tls/tls_channel.hpp"

namespace caftan::transport {
namespace {

constexpr base::Duration kAcceptAgain = std::chrono::milliseconds(100);

/// One handshake over one socket. The executor, at which it is registered, keeps it alive until the handshake is done.
class HandshakeIo final : public Pollable, public std::enable_shared_from_this<HandshakeIo> {
 public:
  /// Not made by make_shared: the deadline's task holds a weak pointer until the deadline, which would keep the whole
  /// memory of each handshake that ended before.
  /// @param tls  what lies between the socket and the handshake; nothing: they are in the clear
  static std::shared_ptr<HandshakeIo> make(PollingExecutor& executor, int fd, MakeChannel make_channel,
                                           net::Handshake handshake, std::optional<net::TlsEngine> tls,
                                           HandshakeDone done) {
    return std::shared_ptr<HandshakeIo>(
        new HandshakeIo(executor, fd, std::move(make_channel), std::move(handshake), std::move(tls), std::move(done)));
  }
  ~HandshakeIo() override {
    if (fd_ >= 0) ::close(fd_);
  }

  void start(base::Duration timeout, bool connected) {
    {
      const std::lock_guard lock(mutex_);
      if (phase_ == Phase::finished) return;  // dropped before it began
      phase_ = connected ? Phase::talking : Phase::connecting;
      out_ = tls_ ? tls_->take_outgoing() : handshake_.start();
      executor_.watch(shared_from_this(), connected ? EPOLLIN | (out_.empty() ? 0U : EPOLLOUT) : EPOLLOUT);
    }
    executor_.post_at(executor_.clock().now() + timeout, [weak = weak_from_this(), timeout] {
      if (const auto self = weak.lock()) self->expire(timeout);
    });
  }

  int fd() const noexcept override { return fd_; }

  void on_ready(std::uint32_t events) override {
    std::unique_lock lock(mutex_);
    if (phase_ == Phase::finished) return;
    if (phase_ == Phase::connecting) {
      int failed = 0;
      socklen_t size = sizeof failed;
      ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &failed, &size);
      if (failed != 0) {
        return finish(lock, Error(Errc::peer_down, std::string("connecting failed: ") + std::strerror(failed)));
      }
      phase_ = Phase::talking;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !read(lock)) return;
    if (!write(lock)) return;
    if (failure() && out_.empty()) return finish(lock, *failure());
    if (handshake_.state() == net::Handshake::State::done && out_.empty()) return finish(lock);
    executor_.rearm(*this, EPOLLIN | (out_.empty() ? 0U : EPOLLOUT));
  }

  /// Ends the handshake without a message to the peer; `done` is not called.
  void drop() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(phase_, Phase::finished) != Phase::finished) executor_.unwatch(*this);
  }

 private:
  enum class Phase : std::uint8_t { connecting, talking, finished };

  HandshakeIo(PollingExecutor& executor, int fd, MakeChannel make_channel, net::Handshake handshake,
              std::optional<net::TlsEngine> tls, HandshakeDone done)
      : executor_(executor),
        fd_(fd),
        make_channel_(std::move(make_channel)),
        tls_(std::move(tls)),
        handshake_(std::move(handshake)),
        done_(std::move(done)) {}

  bool in_tls_handshake() const noexcept { return tls_ && !tls_->is_open(); }
  /// Returns why the connection fails, null while nothing has.
  const Error* failure() const noexcept {
    if (tls_error_) return &*tls_error_;
    return handshake_.state() == net::Handshake::State::failed ? &handshake_.error() : nullptr;
  }
  bool is_over() const noexcept { return failure() || handshake_.state() == net::Handshake::State::done; }

  void expire(base::Duration timeout) {
    std::unique_lock lock(mutex_);
    if (phase_ == Phase::finished) return;
    finish(lock, in_tls_handshake() ? tls_->expired(timeout) : handshake_.expired(timeout));
  }

  /// `read` and `write` return false when the handshake has finished.
  bool read(std::unique_lock<std::mutex>& lock) {
    std::byte buffer[4096];
    while (!is_over()) {
      const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (got <= 0) {
        finish(lock, in_tls_handshake() ? tls_->closed() : handshake_.closed());
        return false;
      }
      const wire::ByteView bytes(buffer, static_cast<std::size_t>(got));
      if (!tls_) {
        wire::append(out_, talk(bytes));
      } else if (auto taken = take_cipher(bytes); !taken) {
        tls_error_ = taken.error();
      }
      if (tls_) wire::append(out_, tls_->take_outgoing());
    }
    return true;
  }

  /// Hands bytes of the peer to the handshake and returns its reply; what lies behind the handshake is kept.
  wire::Bytes talk(wire::ByteView bytes) {
    auto step = handshake_.feed(bytes);
    if (step.state == net::Handshake::State::done) {
      early_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(step.consumed), bytes.end());
    }
    return std::move(step.send);
  }

  /// As talk, for bytes of TLS.
  Result<void> take_cipher(wire::ByteView cipher) {
    if (auto fed = tls_->feed(cipher); !fed || !tls_->is_open()) return fed;
    if (!is_bound_) {
      const auto binding = tls_->binding();
      if (!binding) return binding.error();
      handshake_.bind(*binding, tls_->peer_names());
      is_bound_ = true;
      if (const wire::Bytes hello = handshake_.start(); !hello.empty()) {
        if (auto put = tls_->write(hello); !put) return put;
      }
    }
    while (!is_over()) {
      std::byte plain[net::kMaxHandshakeMessage];
      const auto got = tls_->read(plain, sizeof plain);
      if (!got) return got.error();
      if (*got == 0) break;
      if (const wire::Bytes reply = talk({plain, *got}); !reply.empty()) {
        if (auto put = tls_->write(reply); !put) return put;
      }
    }
    return {};
  }

  bool write(std::unique_lock<std::mutex>& lock) {
    while (!out_.empty()) {
      const ssize_t put = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
      if (put < 0) {
        // Before it closed, the peer may have sent why it refuses: that error is preferred.
        finish(lock, failure() ? *failure() : in_tls_handshake() ? tls_->closed() : handshake_.closed());
        return false;
      }
      out_.erase(out_.begin(), out_.begin() + put);
    }
    return true;
  }

  void finish(std::unique_lock<std::mutex>& lock, Error error) {
    phase_ = Phase::finished;
    HandshakeDone done = std::move(done_);
    lock.unlock();
    executor_.unwatch(*this);
    ::shutdown(fd_, SHUT_RDWR);
    if (done) done(std::move(error));
  }

  void finish(std::unique_lock<std::mutex>& lock) {
    phase_ = Phase::finished;
    HandshakeDone done = std::move(done_);
    lock.unlock();
    executor_.unwatch(*this);
    auto channel = make_channel_(std::exchange(fd_, -1), handshake_.peer());
    if (tls_) channel = make_tls_channel(executor_, std::move(channel), *std::move(tls_));
    Accepted accepted{handshake_.peer(), std::move(channel), std::move(early_)};
    if (done) done(std::move(accepted));
  }

  PollingExecutor& executor_;
  int fd_;
  const MakeChannel make_channel_;
  std::mutex mutex_;
  std::optional<net::TlsEngine> tls_;
  std::optional<Error> tls_error_;
  bool is_bound_ = false;
  net::Handshake handshake_;
  HandshakeDone done_;
  wire::Bytes out_;
  wire::Bytes early_;
  Phase phase_ = Phase::connecting;
};

/// Makes what encrypts a connection; nothing where it stays in the clear. The files are read now (TS-9).
Result<std::optional<net::TlsEngine>> make_tls(const SocketKind& kind, const HandshakeIoOptions& options,
                                               Result<net::TlsEngine> (*make)(const net::TlsKeys&)) {
  if (!kind.takes_tls || !options.tls) return std::optional<net::TlsEngine>();
  auto engine = make(*options.tls);
  if (!engine) return engine.error();
  return std::optional<net::TlsEngine>(*std::move(engine));
}

class SocketListener final : public Listener, public Pollable, public std::enable_shared_from_this<SocketListener> {
 public:
  SocketListener(const SocketKind& kind, PollingExecutor& executor, int fd, SocketAddress address, std::string text,
                 MakeHandshakeOptions options, HandshakeIoOptions io_options, HandshakeDone done)
      : kind_(kind),
        executor_(executor),
        fd_(fd),
        socket_address_(std::move(address)),
        address_(std::move(text)),
        options_(std::move(options)),
        io_options_(io_options),
        done_(std::move(done)) {}
  ~SocketListener() override {
    close();
    ::close(fd_);
  }

  const std::string& address() const noexcept override { return address_; }
  void start() override {
    watched_ = true;
    executor_.watch(shared_from_this(), EPOLLIN);
  }
  int fd() const noexcept override { return fd_; }

  void on_ready(std::uint32_t) override {
    for (;;) {
      const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        welcome(fd);
      } else if (errno != EINTR && errno != ECONNABORTED) {
        break;
      }
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return accept_more();
    // accept failed, for example for lack of descriptors, and the connection is still in the queue: to try again at
    // once would spin.
    executor_.post_at(executor_.clock().now() + kAcceptAgain, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->accept_more();
    });
  }

  void close() override {
    std::set<std::shared_ptr<HandshakeIo>> open;
    {
      const base::LockGuard lock(mutex_);
      if (closed_.exchange(true)) return;
      open.swap(open_);
    }
    if (watched_) executor_.unwatch(*this);
    ::shutdown(fd_, SHUT_RDWR);
    for (const auto& io : open) io->drop();
    if (!socket_address_.path.empty()) ::unlink(socket_address_.path.c_str());
  }

 private:
  void accept_more() {
    if (!closed_) executor_.rearm(*this, EPOLLIN);
  }

  void welcome(int fd) {
    kind_.prepare(fd);
    auto options = options_();
    MakeChannel make_channel;
    if (options) make_channel = kind_.offer(executor_, io_options_, false, options->self);
    auto handshake = options ? net::Handshake::server(std::move(*options)) : Result<net::Handshake>(options.error());
    auto tls = make_tls(kind_, io_options_, net::TlsEngine::server);
    if (!handshake || !tls) {
      ::close(fd);
      done_(handshake ? tls.error() : handshake.error());
      return;
    }
    const auto slot = std::make_shared<std::weak_ptr<HandshakeIo>>();
    auto io = HandshakeIo::make(executor_, fd, std::move(make_channel), std::move(*handshake), *std::move(tls),
                                [weak = weak_from_this(), slot, done = done_](Result<Accepted> result) {
                                  if (const auto self = weak.lock()) self->finished(slot->lock());
                                  done(std::move(result));
                                });
    *slot = io;
    bool full = false;
    {
      const base::LockGuard lock(mutex_);
      if (closed_) return;  // the listener is closed: the connection ends with its handshake
      full = open_.size() >= io_options_.max_open;
      if (!full) open_.insert(io);
    }
    if (full) {
      return done_(Error(Errc::overloaded, std::to_string(io_options_.max_open) + " connections shake hands already"));
    }
    io->start(io_options_.timeout, true);
  }

  void finished(const std::shared_ptr<HandshakeIo>& io) {
    const base::LockGuard lock(mutex_);
    open_.erase(io);
  }

  const SocketKind& kind_;
  PollingExecutor& executor_;
  const int fd_;
  const SocketAddress socket_address_;
  const std::string address_;
  const MakeHandshakeOptions options_;
  const HandshakeIoOptions io_options_;
  const HandshakeDone done_;
  std::atomic<bool> closed_{false};
  bool watched_ = false;
  base::Mutex mutex_;
  std::set<std::shared_ptr<HandshakeIo>> open_ CAFTAN_GUARDED_BY(mutex_);
};

Error system_error(const std::string& what, const std::string& address) {
  return Error(Errc::io_error, what + " " + address + ": " + std::strerror(errno));
}

}  // namespace

MakeChannel make_sockets(PollingExecutor& executor, const char* kind) {
  return [&executor, kind](int fd, const net::PeerInfo&) { return make_socket_channel(executor, fd, kind); };
}

Result<std::shared_ptr<Listener>> listen_at_socket(const SocketKind& kind, PollingExecutor& executor,
                                                   const std::string& address, MakeHandshakeOptions options,
                                                   HandshakeIoOptions io_options, HandshakeDone done) {
  auto parsed = kind.parse(address);
  if (!parsed) return parsed.error();
  const int fd = ::socket(parsed->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return system_error("no socket for", address);
  const int one = 1;
  if (kind.reuses_address) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd, parsed->get(), parsed->size) != 0) {
    const Error error = system_error("bind", address);
    ::close(fd);
    return error;
  }
  if (::listen(fd, 512) != 0) {
    const Error error = system_error("listen", address);
    ::close(fd);
    return error;
  }
  auto listener = std::make_shared<SocketListener>(kind, executor, fd, *parsed, address_of(fd, address),
                                                   std::move(options), io_options, std::move(done));
  return std::shared_ptr<Listener>(listener);
}

void dial_socket(const SocketKind& kind, PollingExecutor& executor, const std::string& address,
                 net::HandshakeOptions options, const std::string& expected_peer, HandshakeIoOptions io_options,
                 HandshakeDone done) {
  auto parsed = kind.parse(address);
  if (!parsed) return done(parsed.error());
  MakeChannel make_channel = kind.offer(executor, io_options, true, options.self);
  auto handshake = net::Handshake::client(std::move(options), expected_peer);
  if (!handshake) return done(handshake.error());
  auto tls = make_tls(kind, io_options, net::TlsEngine::client);
  if (!tls) return done(tls.error());
  const int fd = ::socket(parsed->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return done(system_error("no socket for", address));
  kind.prepare(fd);
  const int failed = ::connect(fd, parsed->get(), parsed->size);
  if (failed != 0 && errno != EINPROGRESS) {
    const Error error(Errc::peer_down, "connecting to " + address + " failed: " + std::strerror(errno));
    ::close(fd);
    return done(error);
  }
  HandshakeIo::make(executor, fd, std::move(make_channel), std::move(*handshake), *std::move(tls), std::move(done))
      ->start(io_options.timeout, failed == 0);
}

}  // namespace caftan::transport
