#include "caftan/net/internal/traffic.hpp"

namespace caftan::net {

void Traffic::add(wire::FrameKind kind, std::uint64_t message, std::uint64_t bytes, std::uint64_t bulk) {
  Sum& sum = kinds_[static_cast<std::size_t>(kind)];
  ++sum.frames;
  sum.bytes += bytes;
  if (message != 0) {
    Sum& part = messages_[message];
    ++part.frames;
    part.bytes += bytes;
  }
  if (bulk == 0) return;
  // Chunks are counted as the outbox cuts a message that is alone in the queue, whatever else is queued.
  const std::uint64_t chunks = (bulk + wire::kMaxChunk - 1) / wire::kMaxChunk;
  Sum& chunked = kinds_[static_cast<std::size_t>(wire::FrameKind::chunk)];
  chunked.frames += chunks;
  chunked.bytes += bulk + chunks * wire::kFrameHeaderSize;
}

Traffic& Traffic::operator+=(const Traffic& other) {
  const auto add_to = [](Sum& sum, const Sum& more) {
    sum.frames += more.frames;
    sum.bytes += more.bytes;
  };
  for (std::size_t i = 0; i < kinds_.size(); ++i) add_to(kinds_[i], other.kinds_[i]);
  for (const auto& [message, sum] : other.messages_) add_to(messages_[message], sum);
  return *this;
}

}  // namespace caftan::net
