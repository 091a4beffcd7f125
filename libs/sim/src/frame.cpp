#include "caftan/sim/internal/frame.hpp"

#include <tuple>
#include <utility>

namespace caftan::sim {
namespace {

/// The least bytes of an event: all fields, and a payload of no byte.
constexpr std::size_t kLeastEvent = 8 + 1 + 4 + 4 + 8 + 1 + 1;

}  // namespace

bool FrameWriter::add(const Event& event, wire::ByteView payload) {
  wire::OutArchive archive(events_);
  archive << event.time << static_cast<std::uint8_t>(event.priority) << event.source << event.to
          << static_cast<std::uint64_t>(event.sequence) << static_cast<std::uint8_t>(event.type);
  archive.save_count(payload.size());
  archive.save_binary(payload.data(), payload.size());
  ++count_;
  return events_.size() >= kPart;
}

wire::Bytes FrameWriter::finish(const FrameHead& head) {
  wire::Bytes bytes;
  bytes.reserve(events_.size() + 96 + 8 * head.sent.size());
  {
    wire::OutArchive archive(bytes);
    archive << head;
    archive.save_count(std::exchange(count_, 0));
    archive.save_binary(events_.data(), events_.size());
  }
  events_.clear();
  return bytes;
}

namespace {

/// The list of events as an archive reads it.
struct ReadEvents {
  std::vector<FrameEvent> events{};
};

}  // namespace
}  // namespace caftan::sim

namespace caftan::wire {

void Codec<sim::FrameEvent>::load(InArchive& from, sim::FrameEvent& to) {
  std::uint8_t priority = 0;
  std::uint64_t sequence = 0;
  std::uint8_t type = 0;
  from >> to.event.time >> priority >> to.event.source >> to.event.to >> sequence >> type;
  if (to.event.time < 0 || to.event.time == sim::kNever.ticks)
    throw DecodeError("an event has a time that no event has");
  if (sequence >= sim::Event::kSequences) throw DecodeError("an event has a sequence of more than 40 bits");
  to.event.priority = priority;
  to.event.sequence = sequence;
  to.event.type = type;
  to.payload = from.take(from.load_count());
}

template <>
struct Codec<sim::ReadEvents> {
  static void load(InArchive& from, sim::ReadEvents& to) {
    to.events.resize(from.load_count(sim::kLeastEvent));
    for (sim::FrameEvent& event : to.events) from >> event;
  }
};

}  // namespace caftan::wire

namespace caftan::sim {

Result<Frame> decode_frame(wire::ByteView bytes) {
  Frame frame;
  ReadEvents read;
  const auto refused = [](const std::string& what) {
    return Error(Errc::malformed_payload, "a frame of a simulation: " + what);
  };
  if (const Result<void> done = wire::decode_into(bytes, std::tie(frame.head, read)); !done)
    return refused(done.error().text());
  const FrameHead& head = frame.head;
  if (head.next.ticks < 0 || head.finish.ticks < 0 || head.reached < FrameHead::kNotReached)
    return refused("a time is negative");
  for (const Time sent : head.sent) {
    if (sent.ticks < 0) return refused("a time is negative");
  }
  frame.events = std::move(read.events);
  return frame;
}

}  // namespace caftan::sim
