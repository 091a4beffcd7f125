/// Taps on the connections between Workers of one process: a test counts, drops, holds or adds frames, stops
/// their flow, and cuts connections. The workers know nothing of it: a tap is a Channel around a real one. Start with
/// `TappedNetwork`.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/frame.hpp"

namespace caftan::test {

/// One whole frame, as it was written to a connection.
struct TappedFrame {
  wire::FrameHeader header;
  wire::ByteView bytes;  ///< header and payload
  wire::ByteView payload() const { return bytes.subspan(wire::kFrameHeaderSize); }
};

/// The writing end of one direction. Threads: one (the stepped executor's baton).
class ChannelTap final : public transport::Channel {
 public:
  using Filter = std::function<bool(const TappedFrame&)>;

  ChannelTap(std::shared_ptr<transport::Channel> inner, std::string from, std::string to)
      : from(std::move(from)), to(std::move(to)), inner_(std::move(inner)) {}

  const std::string from;
  const std::string to;

  /// Frames for which it returns false are not written. Null = all pass.
  void set_filter(Filter filter) { filter_ = std::move(filter); }
  std::size_t count(wire::FrameKind kind) const {
    const auto found = counts_.find(kind);
    return found == counts_.end() ? 0 : found->second;
  }
  /// Writes bytes between two frames of the worker.
  void inject(wire::ByteView bytes) { forward(bytes); }
  /// Keeps frames back until `release`.
  void hold() { holding_ = true; }
  void release() {
    holding_ = false;
    const wire::Bytes held = std::exchange(held_, {});
    forward(held);
  }
  /// Takes no bytes until `let_go`, as where the other end does not read.
  void stick() { stuck_ = true; }
  void let_go() {
    stuck_ = false;
    inner_->arm(reads_, writes_);
  }
  /// Loses what is on the way to this end and lets it see a broken connection.
  void lose() { lost_ = true; }

  void start(Ready ready) override { inner_->start(std::move(ready)); }
  void arm(bool read, bool write) override {
    reads_ = read;
    writes_ = write;
    inner_->arm(read, write && !stuck_);
  }
  Result<std::size_t> read(const iovec* vectors, int count) override {
    if (lost_) return Error(Errc::peer_down, "the connection was cut");
    return inner_->read(vectors, count);
  }
  Result<std::size_t> write(const iovec* vectors, int count) override {
    if (lost_) return Error(Errc::peer_down, "the connection was cut");
    std::size_t taken = 0;
    if (stuck_) return taken;
    for (int i = 0; i < count; ++i) {
      wire::append(stream_, {static_cast<const std::byte*>(vectors[i].iov_base), vectors[i].iov_len});
      taken += vectors[i].iov_len;
    }
    pass_frames();
    return taken;
  }
  bool has_unread() const override { return inner_->has_unread(); }
  void close_write() override { inner_->close_write(); }
  void break_off() override { inner_->break_off(); }
  void close() override { inner_->close(); }
  int fd() const noexcept override { return -1; }
  const char* kind() const noexcept override { return inner_->kind(); }
  bool may_fall_silent() const noexcept override { return inner_->may_fall_silent(); }

 private:
  void pass_frames() {
    while (stream_.size() >= wire::kFrameHeaderSize) {
      const wire::FrameHeader header = wire::decode_header(stream_.data()).value();
      const std::size_t size = wire::kFrameHeaderSize + header.payload_size();
      if (stream_.size() < size) return;
      const TappedFrame frame{header, wire::ByteView(stream_).first(size)};
      ++counts_[header.kind];
      if (!filter_ || filter_(frame)) forward(frame.bytes);
      stream_.erase(stream_.begin(), stream_.begin() + static_cast<std::ptrdiff_t>(size));
    }
  }

  void forward(wire::ByteView bytes) {
    if (holding_) return wire::append(held_, bytes);
    while (!bytes.empty()) {
      const iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
      const auto put = inner_->write(&vector, 1);
      if (!put) return;  // closed: the writer learns it from reading
      bytes = bytes.subspan(*put);
    }
  }

  const std::shared_ptr<transport::Channel> inner_;
  Filter filter_;
  wire::Bytes stream_;
  wire::Bytes held_;
  bool holding_ = false;
  bool stuck_ = false;
  bool reads_ = false;  // what was asked for last
  bool writes_ = false;
  bool lost_ = false;
  std::map<wire::FrameKind, std::size_t> counts_;
};

/// A LocalNetwork whose connections are tapped.
class TappedNetwork {
 public:
  TappedNetwork()
      : taps_(std::make_shared<Taps>()),
        network_(std::make_shared<LocalNetwork>(
            [taps = taps_](transport::PollingExecutor& executor, const std::string& one, const std::string& other) {
              constexpr std::size_t kNeverFull = std::size_t{1} << 40;
              auto [mine, theirs] = transport::make_loopback_pair(executor, kNeverFull);
              auto first = std::make_shared<ChannelTap>(std::move(mine), one, other);
              auto second = std::make_shared<ChannelTap>(std::move(theirs), other, one);
              taps->push_back(first);
              taps->push_back(second);
              return LocalNetwork::Connection(first, second);
            })) {}

  const std::shared_ptr<LocalNetwork>& network() const { return network_; }
  /// For Cluster: puts a worker into this network.
  std::function<void(WorkerOptions&)> change() const {
    return [network = network_](WorkerOptions& options) { options.network = network; };
  }

  /// The direction in which `from` writes to `to`. Precondition: they were connected.
  ChannelTap& tap(const std::string& from, const std::string& to) {
    for (const auto& tap : *taps_) {
      if (tap->from == from && tap->to == to) return *tap;
    }
    throw std::logic_error("no connection from " + from + " to " + to);
  }
  void filter_all(const ChannelTap::Filter& filter) {
    for (const auto& tap : *taps_) tap->set_filter(filter);
  }
  std::size_t count(wire::FrameKind kind) const {
    std::size_t sum = 0;
    for (const auto& tap : *taps_) sum += tap->count(kind);
    return sum;
  }

  /// Ends the connection; what was written still arrives.
  void cut(const std::string& one, const std::string& other) {
    tap(one, other).close_write();
    tap(other, one).close_write();
  }
  /// As cut, but what is on the way is lost.
  void break_off(const std::string& one, const std::string& other) {
    tap(one, other).lose();
    tap(other, one).lose();
    cut(one, other);
  }
  /// Breaks all connections of one worker: to the others it has crashed.
  void isolate(const std::string& who) {
    for (const auto& tap : *taps_) {
      if (tap->from == who) break_off(who, tap->to);
    }
  }

 private:
  using Taps = std::vector<std::shared_ptr<ChannelTap>>;
  std::shared_ptr<Taps> taps_;
  std::shared_ptr<LocalNetwork> network_;
};

}  // namespace caftan::test
