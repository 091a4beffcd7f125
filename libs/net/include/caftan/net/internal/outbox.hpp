/// The write queue of one channel: control frames in order, and the tensor bytes of messages in chunks between them, so
/// that a message of any size never holds a control frame back by more than the largest chunk. `gather` says what to
/// write next, `consume` how much of it was written. Invariants SE-14 to SE-19: docs/protocols/session.md.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/base/internal/fifo.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/internal/out_frame.hpp"
#include "caftan/wire/internal/segment.hpp"

namespace caftan::net {

/// Threads: none of its own and no lock; the channel's write lock serializes all calls. The bytes that `gather`
/// returned stay where they are while frames are appended.
class Outbox {
 public:
  Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  Outbox(Outbox&&) noexcept = default;
  Outbox& operator=(Outbox&&) noexcept = default;

  /// Appends a frame to the control lane; always accepted. Its segments, which are moved from, follow as chunk frames
  /// once those of earlier messages are out. Segments are read when they are written, and their owners released with
  /// their last byte; only small ones with no bulk before them, and those without an owner, are copied at once. Empty
  /// ones are skipped.
  void append(wire::OutFrame&& frame);

  /// Fills `out` with what to write next and returns how many entries were used; 0: nothing is queued. What it returned
  /// once is returned again, in the same order, until it is consumed, whatever is appended meanwhile.
  std::size_t gather(std::span<iovec> out);

  /// The first `bytes` bytes of what `gather` returned are written.
  /// Precondition: not more than it returned.
  void consume(std::size_t bytes);

  bool empty() const noexcept { return queued_bytes_ == 0; }
  /// Returns whether bulk bytes are queued, or a part of what `gather` returned was not written yet.
  bool unfinished() const noexcept { return !committed_.empty() || !bulk_.empty(); }
  /// Returns the bytes not yet consumed, both lanes, without headers of chunks that are not cut yet.
  std::uint64_t queued_bytes() const noexcept { return queued_bytes_; }
  /// As queued_bytes, without the bulk of the first message that is not cut into chunks yet: so the tensors of one
  /// message, however large, are no backlog (SE-35).
  std::uint64_t backlog() const noexcept { return queued_bytes_ - (bulk_.empty() ? 0 : bulk_.front().rest); }

 private:
  /// A contiguous run of bytes and their owner: `bytes`, or `segment` where that is not empty.
  struct Piece {
    wire::Bytes bytes;
    wire::Segment segment;
    wire::ByteView view() const noexcept { return segment.data ? segment.view() : wire::ByteView(bytes); }
  };
  struct Bulk {
    CallId call;
    std::vector<wire::Segment> segments;
    std::size_t next = 0;    ///< the segment to cut from
    std::size_t offset = 0;  ///< bytes of it already cut
    std::uint64_t rest = 0;  ///< bytes not cut yet
  };

  wire::Bytes& buffer_for(std::size_t size);
  void commit();
  std::size_t cut_chunk();

  /// In the order in which they go to the wire; of the first piece, written_ bytes are written already.
  base::Fifo<Piece> committed_;
  std::size_t written_ = 0;
  bool has_chunk_ = false;  ///< the last pieces of committed_ are chunks
  std::vector<wire::Bytes> control_;
  wire::Bytes spare_;  ///< the memory of a buffer that was written, for the next one
  std::deque<Bulk> bulk_;
  std::uint64_t queued_bytes_ = 0;
};

}  // namespace caftan::net
