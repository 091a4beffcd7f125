/// Frames between partitions: `FrameWriter` fills the parts of one, `decode_frame` reads bytes that are not trusted.
/// The format is in docs/protocols/simulation.md.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/sim/internal/event.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::sim {

/// Which rule a frame belongs to.
enum class FrameKind : std::uint8_t { window = 0, promise = 1 };
constexpr bool is_valid(FrameKind kind) { return kind <= FrameKind::promise; }

/// All of a frame but its events.
struct FrameHead {
  /// No border is reached.
  static constexpr Time kNotReached{-1};

  std::uint64_t simulation = 0;
  std::uint32_t sender = 0;
  FrameKind kind = FrameKind::window;
  std::uint64_t round = 0;
  std::uint32_t part = 0;
  bool is_last = false;
  Time next = kNever;  ///< or the promise
  Time finish = kNever;
  Time reached = kNotReached;
  std::vector<Time> sent{};  ///< by partition

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& simulation& sender& kind& round& part& is_last& next& finish& reached& sent;
  }
};

/// An event of a frame; its payload lies in the frame's bytes.
struct FrameEvent {
  Event event{};
  wire::ByteView payload{};
};

/// A frame that was decoded. Valid as long as the bytes.
struct Frame {
  FrameHead head{};
  std::vector<FrameEvent> events{};
};

/// Reads a frame of exactly `bytes`. Errors: malformed_payload (also for times that no event has).
Result<Frame> decode_frame(wire::ByteView bytes);

/// Collects the events of one part. Threads: one at a time.
class FrameWriter {
 public:
  /// How many bytes of events make a part.
  static constexpr std::size_t kPart = 1024 * 1024;

  /// Adds an event. Returns whether the part is full.
  bool add(const Event& event, wire::ByteView payload);
  bool empty() const noexcept { return count_ == 0; }
  /// Returns the bytes of the part, and begins the next one.
  wire::Bytes finish(const FrameHead& head);

 private:
  wire::Bytes events_;
  std::uint64_t count_ = 0;
};

}  // namespace caftan::sim

/// How the events of a frame are read.
template <>
struct caftan::wire::Codec<caftan::sim::FrameEvent> {
  static void load(InArchive& from, sim::FrameEvent& to);
};
