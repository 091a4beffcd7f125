/// A channel between two processes of a model: a stream in each direction with bells as those of a ring, and tensors
/// that are read out of the other process's memory by the code of channel shm (`Lending`).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "caftan/transport/channel.hpp"
#include "caftan/wire/bytes.hpp"
#include "channels/shm/lending.hpp"

namespace caftan::transport {

/// The bytes of one direction.
struct ModelStream {
  std::size_t capacity = 0;
  wire::Bytes bytes;
  std::size_t begin = 0;
  bool ended = false;   // nothing more is written; what was written can be read
  bool broken = false;  // nothing can be read

  std::size_t available() const { return bytes.size() - begin; }
  bool is_readable() const { return available() > 0 || ended || broken; }
  bool is_writable() const { return available() < capacity || ended || broken; }
};

/// Threads: the model's one.
class ModelChannel final : public Channel, public std::enable_shared_from_this<ModelChannel> {
 public:
  ModelChannel(PollingExecutor& process, ModelStream& in, ModelStream& out) : process_(process), in_(in), out_(out) {}

  // What the model sets.
  std::weak_ptr<ModelChannel> peer;
  Lending* lending = nullptr;                              ///< set once this side's memory may be shown
  std::function<void()> on_read;                           ///< called before bytes of the stream are read
  std::function<void(std::span<std::byte>)> on_read_lent;  ///< called before memory of the peer is read
  std::function<void()> after_read_lent;
  bool says_end = true;     ///< false: it does not say that what it has lent is there no more
  bool looks_again = true;  ///< false: `arm` does not report what was there before

  /// The process is gone: the kernel closes its end.
  void kill() {
    is_killed_ = true;
    end(out_, true);
    in_.broken = true;
    wake_peer();
  }
  bool is_rung() const { return is_rung_; }

  void start(Ready ready) override { ready_ = std::move(ready); }
  void arm(bool read, bool write) override {
    if (is_over()) return;
    const bool readable = read && looks_again && in_.is_readable();
    const bool writable = write && out_.is_writable();
    read_armed_ = read && !readable;
    write_armed_ = write && !writable;
    report(readable, writable);
  }
  Result<std::size_t> read(const iovec* vectors, int count) override {
    if (is_killed_) return std::size_t{0};
    if (on_read) on_read();
    if (in_.broken || (in_.available() == 0 && in_.ended)) return Error(Errc::peer_down, "the stream has ended");
    std::size_t got = 0;
    for (int i = 0; i < count; ++i) {
      const std::size_t part = std::min(vectors[i].iov_len, in_.available());
      if (part > 0) std::memcpy(vectors[i].iov_base, in_.bytes.data() + in_.begin, part);
      in_.begin += part;
      got += part;
    }
    if (in_.available() == 0) in_.bytes.clear(), in_.begin = 0;
    if (got > 0) wake_peer();
    return got;
  }
  Result<std::size_t> write(const iovec* vectors, int count) override {
    std::size_t put = 0;
    if (!is_killed_ && (out_.ended || out_.broken)) return Error(Errc::peer_down, "the stream has ended");
    for (int i = 0; i < count; ++i) {
      const std::size_t part =
          is_killed_ ? vectors[i].iov_len : std::min(vectors[i].iov_len, out_.capacity - out_.available());
      if (!is_killed_) wire::append(out_.bytes, {static_cast<const std::byte*>(vectors[i].iov_base), part});
      put += part;
    }
    if (put > 0) wake_peer();
    return put;
  }
  bool has_unread() const override { return in_.available() > 0; }
  void close_write() override { end(out_, false); }
  void break_off() override {
    if (is_killed_) return;
    end(out_, false);
    in_.broken = true;
    wake_peer();
    wake();
  }
  void close() override {
    if (is_over()) return;
    if (lending && says_end) lending->end();
    break_off();
    is_closed_ = true;
  }
  int fd() const noexcept override { return 0; }  // the model's threads sleep without one
  bool try_sleep() override {
    if (in_.is_readable()) return false;
    is_asleep_ = true;
    is_rung_ = false;
    return true;
  }
  void wake(bool) override { is_asleep_ = false; }
  Look look() const override { return in_.is_readable() ? Look::something : Look::nothing; }
  void stay_awake() override { read_armed_ = is_asleep_ = false; }
  bool lends() const override { return lending && lending->peer_reads(); }
  Result<void> read_lent(std::uint64_t from, std::span<std::byte> to) override {
    if (!lending) return Channel::read_lent(from, to);
    on_read_lent(to);
    auto read = lending->read(from, to);
    after_read_lent();
    return read;
  }
  const char* kind() const noexcept override { return "model"; }
  bool may_fall_silent() const noexcept override { return false; }

 private:
  bool is_over() const { return is_killed_ || is_closed_; }
  void end(ModelStream& stream, bool by_kernel) {
    if (is_killed_ && !by_kernel) return;
    stream.ended = true;
    wake_peer();
  }
  void report(bool readable, bool writable) {
    if (!readable && !writable) return;
    process_.post([self = shared_from_this(), readable, writable] {
      if (!self->is_over()) self->ready_(readable, writable);
    });
  }
  /// Reports what has changed on this end, if that was asked for, and rings a thread that sleeps.
  void wake() {
    if (is_over()) return;
    const bool readable = read_armed_ && in_.is_readable();
    const bool writable = write_armed_ && out_.is_writable();
    read_armed_ = read_armed_ && !readable;
    write_armed_ = write_armed_ && !writable;
    is_rung_ = is_rung_ || (is_asleep_ && in_.is_readable());
    report(readable, writable);
  }
  void wake_peer() {
    if (const auto other = peer.lock()) other->wake();
  }

  PollingExecutor& process_;
  ModelStream& in_;
  ModelStream& out_;
  Ready ready_;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool is_asleep_ = false;  // a thread sleeps until it is rung
  bool is_rung_ = false;
  bool is_closed_ = false;
  bool is_killed_ = false;
};

}  // namespace caftan::transport
