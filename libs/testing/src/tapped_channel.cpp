#include "tapped_channel.hpp"

#include <algorithm>
#include <utility>

namespace caftan::testing {

TappedChannel::TappedChannel(transport::PollingExecutor& executor, std::shared_ptr<transport::Channel> inner,
                             std::string from, std::string to)
    : Link(std::move(from), std::move(to)), executor_(executor), inner_(std::move(inner)) {}

void TappedChannel::start(Ready ready) {
  ready_ = std::move(ready);
  inner_->start([weak = weak_from_this()](bool readable, bool writable) {
    if (const auto self = weak.lock()) self->on_ready(readable, writable);
  });
}

void TappedChannel::on_ready(bool readable, bool writable) {
  if (writable && !unsent_.empty()) {
    put_unsent();
    writable = writes_ && unsent_.empty();
  }
  reads_ = reads_ && !readable;
  writes_ = writes_ && !writable;
  if (!unsent_.empty()) inner_->arm(reads_, true);
  if (readable || writable) ready_(readable, writable);
}

void TappedChannel::lose() {
  late_.clear();
  unsent_.clear();
  lost_ = true;
}

void TappedChannel::release() {
  holding_ = false;
  const wire::Bytes held = std::exchange(held_, {});
  forward(held);
}

void TappedChannel::set_full(bool full) {
  full_ = full;
  if (!full_) inner_->arm(reads_, writes_ || !unsent_.empty());
}

std::size_t TappedChannel::count(wire::FrameKind kind) const {
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second;
}

void TappedChannel::arm(bool read, bool write) {
  reads_ = read;
  writes_ = write;
  inner_->arm(read, (write && !full_) || !unsent_.empty());
}

Result<std::size_t> TappedChannel::read(const iovec* vectors, int count) {
  if (lost_) return Error(Errc::peer_down, "the connection was cut");
  return inner_->read(vectors, count);
}

Result<void> TappedChannel::read_lent(std::uint64_t from, std::span<std::byte> to) {
  if (lent_is_lost_) return Error(Errc::peer_down, "the connection was cut");
  return inner_->read_lent(from, to);
}

Result<std::size_t> TappedChannel::write(const iovec* vectors, int count) {
  if (lost_) return Error(Errc::peer_down, "the connection was cut");
  std::size_t taken = 0;
  if (full_) return taken;
  for (int i = 0; i < count; ++i) {
    wire::append(stream_, {static_cast<const std::byte*>(vectors[i].iov_base), vectors[i].iov_len});
    taken += vectors[i].iov_len;
  }
  pass_frames();
  return taken;
}

void TappedChannel::close_write() {
  if (late_.empty() && unsent_.empty()) return inner_->close_write();
  closes_late_ = true;
}

void TappedChannel::close() {
  for (const Late& late : std::exchange(late_, {})) put(late.bytes);
  closes_late_ = false;
  inner_->close();
}

void TappedChannel::pass_frames() {
  while (stream_.size() >= wire::kFrameHeaderSize) {
    const wire::FrameHeader header = wire::decode_header(stream_.data()).value();
    const std::size_t size = wire::kFrameHeaderSize + header.payload_size();
    if (stream_.size() < size) return;
    const Frame frame{header, wire::ByteView(stream_).first(size)};
    if (goes_on(frame)) forward(frame.bytes);
    stream_.erase(stream_.begin(), stream_.begin() + static_cast<std::ptrdiff_t>(size));
  }
}

bool TappedChannel::goes_on(const Frame& frame) {
  ++counts_[frame.header.kind];
  if (const auto drop = drops_.find(frame.header.kind); drop != drops_.end() && drop->second > 0) {
    --drop->second;
    return false;
  }
  return !filter_ || filter_(frame);
}

void TappedChannel::forward(wire::ByteView bytes) {
  if (holding_) return wire::append(held_, bytes);
  if (delay_ > base::Duration::zero() || !late_.empty()) return forward_later(bytes);
  put(bytes);
}

void TappedChannel::forward_later(wire::ByteView bytes) {
  base::TimePoint due = executor_.clock().now() + delay_;
  if (!late_.empty()) due = std::max(due, late_.back().due);
  late_.push_back({due, {}});
  wire::append(late_.back().bytes, bytes);
  executor_.post_at(due, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->forward_due();
  });
}

/// The seed may run the timers of one moment in any order, so each forwards all that is due.
void TappedChannel::forward_due() {
  while (!late_.empty() && late_.front().due <= executor_.clock().now()) {
    put(late_.front().bytes);
    late_.pop_front();
  }
  if (late_.empty() && unsent_.empty() && std::exchange(closes_late_, false)) inner_->close_write();
}

void TappedChannel::put(wire::ByteView bytes) {
  const bool first = unsent_.empty();
  wire::append(unsent_, bytes);
  if (!first) return;
  put_unsent();
  if (!unsent_.empty()) inner_->arm(reads_, true);
}

void TappedChannel::put_unsent() {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    const iovec vector{unsent_.data() + sent, unsent_.size() - sent};
    const auto written = inner_->write(&vector, 1);
    if (written && *written == 0) break;
    // Where the other end was closed, the writer learns that when it reads.
    sent = written ? sent + *written : unsent_.size();
  }
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
  if (unsent_.empty() && late_.empty() && std::exchange(closes_late_, false)) inner_->close_write();
}

}  // namespace caftan::testing
