// A `Link`: a channel of a test's network, with a real channel inside.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "caftan/base/result.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/transport/channel.hpp"

namespace caftan::testing {

/// The writing end of one direction. Threads: one at a time, of the stepped executor or the test's.
class TappedChannel final : public transport::Channel, public Link, public std::enable_shared_from_this<TappedChannel> {
 public:
  TappedChannel(transport::PollingExecutor& executor, std::shared_ptr<transport::Channel> inner, std::string from,
                std::string to);

  /// Loses the bytes on the way to this end and the delayed frames that this end has written; later reads and writes of
  /// this end fail with peer_down.
  void lose();
  /// The process behind the other end is gone, and what it has lent with it.
  void lose_lent() { lent_is_lost_ = true; }

  void drop(wire::FrameKind kind, std::size_t count) override { drops_[kind] = count; }
  void set_delay(base::Duration delay) override { delay_ = delay; }
  void hold() override { holding_ = true; }
  void release() override;
  void set_full(bool full) override;
  void set_filter(Filter filter) override { filter_ = std::move(filter); }
  void inject(wire::ByteView bytes) override { forward(bytes); }
  std::size_t count(wire::FrameKind kind) const override;

  void start(Ready ready) override;
  void arm(bool read, bool write) override;
  Result<std::size_t> read(const iovec* vectors, int count) override;
  Result<std::size_t> write(const iovec* vectors, int count) override;
  bool has_unread() const override { return inner_->has_unread(); }
  /// Ends writing, once the delayed frames have arrived.
  void close_write() override;
  void break_off() override { inner_->break_off(); }
  /// Closes this end. Delayed frames arrive at once, because this end forwards none later.
  void close() override;
  int fd() const noexcept override { return -1; }
  const char* kind() const noexcept override { return inner_->kind(); }
  std::string note() const override { return inner_->note(); }
  bool lends() const override { return inner_->lends(); }
  Result<void> read_lent(std::uint64_t from, std::span<std::byte> to) override;
  /// Both ends are in this process, whatever is between them.
  bool may_fall_silent() const noexcept override { return false; }

 private:
  struct Late {
    base::TimePoint due;
    wire::Bytes bytes;
  };

  void pass_frames();
  bool goes_on(const Frame& frame);
  void forward(wire::ByteView bytes);
  void forward_later(wire::ByteView bytes);
  void forward_due();
  void put(wire::ByteView bytes);
  void put_unsent();
  void on_ready(bool readable, bool writable);

  transport::PollingExecutor& executor_;
  const std::shared_ptr<transport::Channel> inner_;
  Ready ready_;
  Filter filter_;
  std::map<wire::FrameKind, std::size_t> drops_;
  std::map<wire::FrameKind, std::size_t> counts_;
  wire::Bytes stream_;  // bytes that were written and are not a whole frame yet
  wire::Bytes held_;
  std::deque<Late> late_;
  wire::Bytes unsent_;  // what has gone on, and the channel had no room for
  base::Duration delay_{};
  bool holding_ = false;
  bool full_ = false;
  bool lost_ = false;
  bool lent_is_lost_ = false;
  bool closes_late_ = false;
  bool reads_ = false;  // what was asked for last, and not reported since
  bool writes_ = false;
};

}  // namespace caftan::testing
