/// `FrameReader`: takes the bytes of a session as they come, and gives out frames that are checked and whole. It has no
/// sockets, threads or clocks. Rules: docs/protocols/wire.md, WI-2 to WI-7 and WI-22.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "caftan/base/internal/fifo.hpp"
#include "caftan/base/result.hpp"
#include "caftan/base/reused.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/frame.hpp"
#include "caftan/wire/internal/block_pool.hpp"
#include "caftan/wire/message_limits.hpp"

namespace caftan::wire {

/// The sections of a frame that receivers use. If a type comes twice, the first section counts.
struct InSections {
  std::optional<ByteView> autograd;
  std::optional<ByteView> chain;
  std::optional<ByteView> target;
  std::optional<ByteView> depth;
  std::optional<ByteView> error_kinds;
  std::optional<ByteView> grad_mode;
};

/// A frame as it arrived: header, sections, body, table, and its tensor segments, complete.
struct InFrame {
  FrameHeader header;
  Block payload;  ///< owns what the views show
  InSections sections;
  ByteView body;
  ByteView table;
  /// The tensors' bytes; none if `received` is an error.
  base::Reused<std::vector<Block>> segments;
  bool lent = false;               ///< the peer lent segments of it, and waits for `taken`
  Result<void> received;           ///< limit_exceeded: there was no memory for the tensors, which were skipped
  std::shared_ptr<void> manifest;  ///< the object that the caller of FrameReader made from the manifest
};

/// Threads: one at a time, except where a method says otherwise.
class FrameReader {
 public:
  /// The pool must outlive the reader.
  FrameReader(BlockPool& pool, const MessageLimits& limits) : pool_(pool), limits_(limits) {}
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  /// Where the next bytes of the stream belong: `direct` first, which is the place of a payload or of a tensor and may
  /// be empty, then `buffer`, which never is.
  struct Room {
    std::span<std::byte> direct;
    std::span<std::byte> buffer;
  };
  /// Precondition: the last `next` returned `nothing`, or there was none yet.
  Room room();
  /// Reports that the next `bytes` bytes were put into `room()`.
  void filled(std::size_t bytes);
  /// Copies as many of `bytes` as there is room for, calls `filled`, and returns how many it copied.
  std::size_t put(ByteView bytes);
  /// Returns whether the next bytes can be put straight into the memory of a frame or of tensors, not into the buffer.
  /// Precondition: as for `room`.
  bool has_direct_room() { return !direct_room().empty(); }

  /// What `next` has found.
  enum class Item : std::uint8_t {
    nothing,   ///< more bytes are needed
    manifest,  ///< the manifest of the frame that is being read: see `kind`, `manifest` and `set_manifest`
    frame,     ///< a whole frame: `take` it before `next` is called again
  };
  /// Returns what comes next in the stream. Errors: malformed_payload, limit_exceeded, protocol_mismatch (a critical
  /// section of an unknown type): the session ends, and nothing more can be read.
  Result<Item> next();

  /// Returns the kind of the frame whose manifest was found.
  FrameKind kind() const noexcept { return frame_.header.kind; }
  ByteView manifest() const noexcept { return manifest_; }
  /// Sets `InFrame::manifest` of that frame.
  void set_manifest(std::shared_ptr<void> manifest) noexcept { frame_.manifest = std::move(manifest); }
  /// Precondition: `next` has returned Item::frame.
  InFrame take();

  /// What is to be read out of the peer's memory: `to.size()` bytes at its address `from`.
  struct Place {
    std::uint64_t from;
    std::span<std::byte> to;
  };
  /// Returns whether segments of the oldest message are to be read out of the peer's memory.
  bool has_place() const noexcept { return !incomplete_.empty() && incomplete_.front().places_missing > 0; }
  /// Returns the rest of the first of these segments; nothing if none is to be read, or if there is no memory for it.
  /// Precondition: as for `room`.
  std::optional<Place> place();
  /// Reports that the first `bytes` bytes of that rest were read; `next` looks whether the message is whole now.
  void took_place(std::size_t bytes);

  /// Gives back the memory of messages that are not whole.
  void drop_incomplete() {
    incomplete_.clear();
    filled_ = 0;
  }
  /// Returns how many frames have begun, chunks included. Threads: any.
  std::uint64_t frames() const noexcept { return frames_.load(std::memory_order_relaxed); }

 private:
  enum class State : std::uint8_t {
    header,    // the next bytes are a header
    payload,   // the next bytes fill the payload of frame_
    sections,  // the payload is there; the sections are being walked
    whole,     // frame_ is to be taken
    chunk,     // the next bytes are tensor bytes of the oldest message in incomplete_
  };
  /// A segment that is being filled, and how many bytes of it are there.
  struct Cursor {
    std::size_t segment = 0;
    std::size_t offset = 0;
  };
  struct Incomplete {
    // Segments behind the two that are being filled have no memory yet (WI-7).
    InFrame frame;
    ByteView sizes;   // of all segments, as they lie in the payload of the frame
    ByteView places;  // their addresses in the peer's memory, 0 for those that come as chunks; empty if all do
    Cursor chunked;   // what chunks fill
    Cursor placed;    // what is read out of the peer's memory
    std::uint64_t chunks_missing = 0;  // bytes
    std::uint64_t places_missing = 0;  // bytes

    std::uint64_t size(std::size_t segment) const noexcept;
    std::uint64_t place(std::size_t segment) const noexcept;
  };

  std::span<std::byte> direct_room();
  std::span<std::byte> chunk_room();
  void took_chunk(std::size_t bytes);
  void read_chunk();
  Result<void> begin_frame(const FrameHeader& header);
  void read_payload();
  void split_payload();
  Result<bool> find_manifest();
  Result<void> end_frame();
  Incomplete* chunk_target() noexcept {
    return filled_ < incomplete_.size() ? &incomplete_.begin()[static_cast<std::ptrdiff_t>(filled_)] : nullptr;
  }
  void skip_filled() noexcept;
  void begin_segment(Incomplete& message, Cursor& at, bool is_placed);

  BlockPool& pool_;
  const MessageLimits limits_;
  std::unique_ptr<std::byte[]> buffer_;  // allocated when bytes come: many sessions never need it
  std::size_t begin_ = 0;                // where the unread bytes in the buffer begin
  std::size_t end_ = 0;
  State state_ = State::header;
  InFrame frame_;  // the frame that is being read, or is whole
  std::size_t payload_filled_ = 0;
  SectionReader sections_{ByteView()};
  ByteView manifest_;
  ByteView segment_sizes_;
  ByteView segment_places_;
  std::uint32_t chunk_left_ = 0;
  base::Fifo<Incomplete> incomplete_;  // messages whose tensors have not come, the oldest first
  std::size_t filled_ = 0;             // so many of them, at the front, lack no bytes of chunks
  bool after_bye_ = false;
  std::atomic<std::uint64_t> frames_{0};
};

}  // namespace caftan::wire
