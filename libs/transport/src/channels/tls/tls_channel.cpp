#include "channels/tls/tls_channel.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "caftan/base/mutex.hpp"

namespace caftan::transport {
namespace {

constexpr std::size_t kRecord = 16 * 1024;      // plain text of the largest TLS record
constexpr std::size_t kBatch = 4 * kRecord;     // plain text that is encrypted before its cipher text is sent
constexpr std::size_t kReadAtOnce = 64 * 1024;  // cipher text

class TlsChannel final : public Channel, public std::enable_shared_from_this<TlsChannel> {
 public:
  TlsChannel(PollingExecutor& executor, std::shared_ptr<Channel> carrier, net::TlsEngine engine)
      : executor_(executor), carrier_(std::move(carrier)), unread_(engine.has_unread()), engine_(std::move(engine)) {}

  void start(Ready ready) override {
    ready_ = std::move(ready);
    carrier_->start([weak = weak_from_this()](bool readable, bool writable) {
      if (const auto self = weak.lock()) self->ready_(readable, writable);
    });
  }

  // Bytes that this object holds are reported by no socket.
  void arm(bool read, bool write) override {
    const bool holds = read && unread_.load(std::memory_order_acquire);
    carrier_->arm(read && !holds, write);
    if (!holds) return;
    executor_.post([weak = weak_from_this()] {
      if (const auto self = weak.lock(); self && !self->closed_.load(std::memory_order_acquire)) {
        self->ready_(true, false);
      }
    });
  }

  Result<std::size_t> read(const iovec* vectors, int count) override {
    std::size_t total = 0;
    bool drained = false;
    for (;;) {
      const auto more = decrypt(vectors, count, total);
      if (!more) return more.error();
      if (*more == Progress::full) break;
      if (drained) {
        unread_.store(false, std::memory_order_release);
        break;
      }
      const iovec into{cipher_.data(), cipher_.size()};
      const auto got = carrier_->read(&into, 1);
      if (!got && total == 0) return Error(got.error().code(), got.error().text() + ", without TLS's own end");
      if (!got) {  // the next read finds the end again
        unread_.store(true, std::memory_order_release);
        break;
      }
      if (*got > 0) beats_.fetch_add(1, std::memory_order_relaxed);
      drained = *got < cipher_.size();
      const base::LockGuard lock(mutex_);
      engine_.lend(wire::ByteView(cipher_).first(*got));
    }
    return total;
  }

  /// What is offered again begins with the same bytes (SE-19): `encrypted_` of them are cipher text already.
  Result<std::size_t> write(const iovec* vectors, int count) override {
    std::size_t taken = 0;
    for (;;) {
      while (sent_ < sending_.size()) {
        const iovec from{sending_.data() + sent_, sending_.size() - sent_};
        const auto put = carrier_->write(&from, 1);
        if (!put) return put;
        if (*put == 0) return taken;
        sent_ += *put;
      }
      taken += std::exchange(encrypted_, 0);
      const auto done = encrypt(vectors, count, taken);
      if (!done) return done;
      if (*done == 0) return taken;
      encrypted_ = *done;
    }
  }

  bool has_unread() const override { return unread_.load(std::memory_order_acquire) || carrier_->has_unread(); }

  void close_write() override {
    wire::Bytes last;
    {
      const base::LockGuard lock(mutex_);
      engine_.close_write();
      last = engine_.take_outgoing();
    }
    const iovec from{last.data(), last.size()};
    (void)carrier_->write(&from, 1);  // a peer that does not get it sees an end without TLS's own
    carrier_->close_write();
  }
  void break_off() override { carrier_->break_off(); }
  void close() override {
    closed_.store(true, std::memory_order_release);
    carrier_->close();
  }

  int fd() const noexcept override { return carrier_->fd(); }
  bool try_sleep() override { return !unread_.load(std::memory_order_acquire) && carrier_->try_sleep(); }
  void wake(bool readable) override { carrier_->wake(readable); }

  /// Cipher text shows that the peer lives, whether or not it completes a record (SE-7).
  std::uint64_t beats() const override { return beats_.load(std::memory_order_relaxed); }

  const char* kind() const noexcept override {
    return std::string_view(carrier_->kind()) == "ucx" ? "ucx+tls" : "tcp+tls";
  }
  std::string note() const override { return carrier_->note(); }
  bool may_fall_silent() const noexcept override { return carrier_->may_fall_silent(); }
  std::string peer_place() const override { return carrier_->peer_place(); }

 private:
  enum class Progress : std::uint8_t {
    full,   // the vectors are
    empty,  // more cipher text is needed
  };

  /// Fills the vectors from byte `total` on, as far as there is plain text, and adds its size to `total`.
  Result<Progress> decrypt(const iovec* vectors, int count, std::size_t& total) {
    const base::LockGuard lock(mutex_);
    std::size_t skip = total;
    for (int i = 0; i < count; ++i) {
      if (skip >= vectors[i].iov_len) {
        skip -= vectors[i].iov_len;
        continue;
      }
      auto* const to = static_cast<std::byte*>(vectors[i].iov_base);
      while (skip < vectors[i].iov_len) {
        const auto got = engine_.read(to + skip, vectors[i].iov_len - skip);
        if (!got && total == 0) return got.error();
        if (!got) {  // the engine keeps the error for the next read, which no socket reports
          unread_.store(true, std::memory_order_release);
          return Progress::full;
        }
        if (*got == 0) return Progress::empty;
        skip += *got;
        total += *got;
      }
      skip = 0;
    }
    unread_.store(engine_.has_unread(), std::memory_order_release);
    return Progress::full;
  }

  /// Encrypts what is offered from byte `skip` on into `sending_`, at most a batch, and returns how much that was.
  Result<std::size_t> encrypt(const iovec* vectors, int count, std::size_t skip) {
    std::size_t done = 0;
    wire::Bytes small;  // several vectors share a record
    const base::LockGuard lock(mutex_);
    const auto put_small = [&]() -> Result<void> {
      mutex_.assert_held();
      if (small.empty()) return {};
      auto put = engine_.write(small);
      small.clear();
      return put;
    };
    for (int i = 0; i < count && done < kBatch; ++i) {
      wire::ByteView rest(static_cast<const std::byte*>(vectors[i].iov_base), vectors[i].iov_len);
      const std::size_t passed = std::min(skip, rest.size());
      skip -= passed;
      rest = rest.subspan(passed);
      while (!rest.empty() && done < kBatch) {
        const bool whole = small.empty() && rest.size() >= kRecord;
        const std::size_t part = std::min(rest.size(), kRecord - small.size());
        if (whole) {
          if (auto put = engine_.write(rest.first(part)); !put) return put.error();
        } else {
          wire::append(small, rest.first(part));
          if (small.size() == kRecord) {
            if (auto put = put_small(); !put) return put.error();
          }
        }
        done += part;
        rest = rest.subspan(part);
      }
    }
    if (auto put = put_small(); !put) return put.error();
    engine_.take_outgoing(sending_);
    sent_ = 0;
    return done;
  }

  PollingExecutor& executor_;
  const std::shared_ptr<Channel> carrier_;
  Ready ready_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> unread_;  // bytes that no socket reports may lie here
  std::atomic<std::uint64_t> beats_{0};

  base::Mutex mutex_;  // one thread reads while another one writes
  net::TlsEngine engine_ CAFTAN_GUARDED_BY(mutex_);

  wire::Bytes cipher_ = wire::Bytes(kReadAtOnce);  // of the thread that reads
  wire::Bytes sending_;                            // these three of the thread that writes: cipher text
  std::size_t sent_ = 0;                           // bytes of it that the carrier has taken
  std::size_t encrypted_ = 0;                      // bytes of plain text in it
};

}  // namespace

std::shared_ptr<Channel> make_tls_channel(PollingExecutor& executor, std::shared_ptr<Channel> carrier,
                                          net::TlsEngine engine) {
  return std::make_shared<TlsChannel>(executor, std::move(carrier), std::move(engine));
}

}  // namespace caftan::transport
