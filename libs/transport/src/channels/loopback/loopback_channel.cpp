#include <algorithm>
#include <atomic>
#include <cstring>

#include "caftan/base/mutex.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::transport {
namespace {

class LoopbackChannel;

/// The bytes of one direction. A posted task reports changes to `reader` and `writer`, never the thread that makes the
/// change: the two ends are two workers, and in tests each delivery is a step of its own.
struct Direction {
  base::Mutex mutex;
  wire::Bytes bytes CAFTAN_GUARDED_BY(mutex);
  std::size_t begin CAFTAN_GUARDED_BY(mutex) = 0;  // consumed so far
  const std::size_t capacity;
  bool write_closed CAFTAN_GUARDED_BY(mutex) = false;
  bool broken CAFTAN_GUARDED_BY(mutex) = false;
  bool reader_armed CAFTAN_GUARDED_BY(mutex) = false;
  bool writer_armed CAFTAN_GUARDED_BY(mutex) = false;
  std::weak_ptr<LoopbackChannel> reader CAFTAN_GUARDED_BY(mutex);
  std::weak_ptr<LoopbackChannel> writer CAFTAN_GUARDED_BY(mutex);

  explicit Direction(std::size_t limit) : capacity(limit) {}
  std::size_t available() const CAFTAN_REQUIRES(mutex) { return bytes.size() - begin; }
  bool readable() const CAFTAN_REQUIRES(mutex) { return available() > 0 || write_closed || broken; }
  bool writable() const CAFTAN_REQUIRES(mutex) { return available() < capacity || broken; }
};

class LoopbackChannel final : public Channel, public std::enable_shared_from_this<LoopbackChannel> {
 public:
  LoopbackChannel(PollingExecutor& executor, std::shared_ptr<Direction> in, std::shared_ptr<Direction> out)
      : executor_(executor), in_(std::move(in)), out_(std::move(out)) {}

  void start(Ready ready) override {
    ready_ = std::move(ready);
    {
      const base::LockGuard lock(in_->mutex);
      in_->reader = weak_from_this();
    }
    const base::LockGuard lock(out_->mutex);
    out_->writer = weak_from_this();
  }

  void arm(bool read, bool write) override {
    bool now_readable = false;
    bool now_writable = false;
    {
      const base::LockGuard lock(in_->mutex);
      now_readable = read && in_->readable();
      in_->reader_armed = read && !now_readable;
    }
    {
      const base::LockGuard lock(out_->mutex);
      now_writable = write && out_->writable();
      out_->writer_armed = write && !now_writable;
    }
    if (now_readable || now_writable) post(now_readable, now_writable);
  }

  Result<std::size_t> read(const iovec* vectors, int count) override {
    std::size_t got = 0;
    std::shared_ptr<LoopbackChannel> wake;
    {
      const base::LockGuard lock(in_->mutex);
      if (in_->broken || (in_->available() == 0 && in_->write_closed)) {
        return Error(Errc::peer_down, "the connection was closed by the peer");
      }
      for (int i = 0; i < count; ++i) {
        const std::size_t part = std::min(vectors[i].iov_len, in_->available());
        if (part == 0) break;
        std::memcpy(vectors[i].iov_base, in_->bytes.data() + in_->begin, part);
        in_->begin += part;
        got += part;
      }
      if (in_->begin >= in_->bytes.size() / 2) {
        in_->bytes.erase(in_->bytes.begin(), in_->bytes.begin() + static_cast<std::ptrdiff_t>(in_->begin));
        in_->begin = 0;
      }
      if (got > 0 && in_->writer_armed) {
        in_->writer_armed = false;
        wake = in_->writer.lock();
      }
    }
    if (wake) wake->post(false, true);
    return got;
  }

  Result<std::size_t> write(const iovec* vectors, int count) override {
    std::size_t put = 0;
    std::shared_ptr<LoopbackChannel> wake;
    {
      const base::LockGuard lock(out_->mutex);
      if (out_->broken || out_->write_closed) return Error(Errc::peer_down, "the connection is closed");
      for (int i = 0; i < count && out_->available() < out_->capacity; ++i) {
        const std::size_t part = std::min(vectors[i].iov_len, out_->capacity - out_->available());
        const auto* from = static_cast<const std::byte*>(vectors[i].iov_base);
        wire::append(out_->bytes, {from, part});
        put += part;
      }
      if (put > 0 && out_->reader_armed) {
        out_->reader_armed = false;
        wake = out_->reader.lock();
      }
    }
    if (wake) wake->post(true, false);
    return put;
  }

  bool has_unread() const override {
    const base::LockGuard lock(in_->mutex);
    return in_->available() > 0;
  }

  void close_write() override { end(*out_, &Direction::write_closed); }

  void break_off() override {
    end(*out_, &Direction::write_closed);
    end(*in_, &Direction::broken);
  }

  void close() override {
    closed_ = true;
    break_off();
  }

  int fd() const noexcept override { return -1; }
  const char* kind() const noexcept override { return "loopback"; }
  bool may_fall_silent() const noexcept override { return false; }

 private:
  void post(bool readable, bool writable) {
    executor_.post([self = shared_from_this(), readable, writable] {
      if (!self->closed_) self->ready_(readable, writable);
    });
  }

  void end(Direction& direction, bool Direction::*flag) {
    std::shared_ptr<LoopbackChannel> reader;
    std::shared_ptr<LoopbackChannel> writer;
    {
      const base::LockGuard lock(direction.mutex);
      direction.*flag = true;
      if (std::exchange(direction.reader_armed, false)) reader = direction.reader.lock();
      if (direction.broken && std::exchange(direction.writer_armed, false)) writer = direction.writer.lock();
    }
    // The break is reported to this end, too, unless it was closed (post checks that): both ends find the break when
    // they read.
    if (reader) reader->post(true, false);
    if (writer) writer->post(false, true);
  }

  PollingExecutor& executor_;
  const std::shared_ptr<Direction> in_;
  const std::shared_ptr<Direction> out_;
  Ready ready_;
  std::atomic<bool> closed_{false};
};

}  // namespace

std::pair<std::shared_ptr<Channel>, std::shared_ptr<Channel>> make_loopback_pair(PollingExecutor& executor,
                                                                                 std::size_t capacity) {
  auto forth = std::make_shared<Direction>(capacity);
  auto back = std::make_shared<Direction>(capacity);
  return {std::make_shared<LoopbackChannel>(executor, back, forth),
          std::make_shared<LoopbackChannel>(executor, forth, back)};
}

}  // namespace caftan::transport
