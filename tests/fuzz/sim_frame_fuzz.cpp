// Takes arbitrary bytes as a frame of a simulation: by themselves, and at a partition, which they may end and nothing
// else. What is accepted is written as the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "caftan/sim/internal/partition.hpp"

namespace {

using namespace caftan;
using namespace caftan::sim;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Note {
  std::vector<std::uint32_t> numbers{};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& numbers;
  }
};
struct Process {
  using Events = sim::Events<Note>;
  std::uint64_t seen = 0;
  void start(LpContext&) {}
  void on(const Note& note, LpContext&) { seen += note.numbers.size(); }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& seen;
  }
};

struct NoPeer final : FrameSink {
  void send(std::uint32_t, wire::Bytes) override {}
};

void decode_alone(wire::ByteView input) {
  const Result<Frame> frame = decode_frame(input);
  if (!frame) {
    require(frame.error().code() == Errc::malformed_payload || frame.error().code() == Errc::limit_exceeded);
    return;
  }
  FrameWriter writer;
  for (const FrameEvent& event : frame->events) writer.add(event.event, event.payload);
  const wire::Bytes again = writer.finish(frame->head);
  require(std::equal(again.begin(), again.end(), input.begin(), input.end()));
}

void give_to_partition(wire::ByteView input, Sync sync) {
  NoPeer sink;
  auto kernel = make_kernel(
      [](Builder& builder) {
        builder.lookahead(Time{5});
        builder.add<Process>(4, [](LpId) { return Process{}; });
      },
      {.events = 100}, 0, 2);
  Partition partition(0, std::move(kernel).value(), sync, sink);
  require(partition.start().has_value() && partition.grant(Time{1000}).has_value() && partition.advance().has_value());
  const Result<void> taken = partition.on_frame(input);
  const Result<void> gone_on = partition.advance();
  require(taken.has_value() || !gone_on.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const wire::ByteView input = std::as_bytes(std::span(data, size));
  decode_alone(input);
  give_to_partition(input, Sync::window);
  give_to_partition(input, Sync::null_message);
  return 0;
}
