/// The write queue of one channel: control frames in order, and the tensor bytes of messages in chunks between them, so
/// that a message of any size never holds a control frame back by more than the largest chunk. `gather` says what to
/// write next, `consume` how much of it was written. Segments that a message lends are kept until `taken`. Invariants
/// SE-14 to SE-19: docs/protocols/session.md; BU-2 and BU-6: docs/protocols/bulk.md.
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
  /// ones are skipped. Segments that the frame lends do not follow: they are kept until the peer has read them.
  void append(wire::OutFrame&& frame);

  /// The peer has read the lent segments of the oldest message. Returns them, for the caller to let go of.
  /// Precondition: lends().
  std::vector<wire::Segment> taken();
  /// Returns all segments that are lent, of which none is any more.
  std::vector<wire::Segment> take_back();
  /// Returns whether the peer has not read all that was lent.
  bool lends() const noexcept { return !lent_.empty(); }

  /// Fills `out` with what to write next and returns how many entries were used; 0: nothing is queued. What it returned
  /// once is returned again, in the same order, until it is consumed, whatever is appended meanwhile.
  std::size_t gather(std::span<iovec> out);

  /// The first `bytes` bytes of what `gather` returned are written.
  /// Precondition: not more than it returned.
  void consume(std::size_t bytes);

  bool empty() const noexcept { return queued_bytes_ == 0; }
  /// Returns whether bulk bytes are queued, a part of what `gather` returned was not written yet, or there were frames
  /// that it did not return because a chunk was before them.
  bool unfinished() const noexcept { return !committed_.empty() || !bulk_.empty() || has_left_frames_; }
  /// Returns the bytes not yet consumed, both lanes, without headers of chunks that are not cut yet.
  std::uint64_t queued_bytes() const noexcept { return queued_bytes_; }
  /// Returns the bytes that the peer has not taken: queued ones without the bulk of the first message that is not cut
  /// into chunks yet, and lent ones without those of the oldest message. So the tensors of one message, however large,
  /// are no backlog (SE-35).
  std::uint64_t backlog() const noexcept {
    return queued_bytes_ - (bulk_.empty() ? 0 : bulk_.front().rest) + lent_bytes_ -
           (lent_.empty() ? 0 : lent_.front().bytes);
  }

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

  /// What one message has lent.
  struct Lent {
    std::vector<wire::Segment> segments;
    std::uint64_t bytes = 0;
  };

  wire::Bytes& buffer_for(std::size_t size);
  void lend(wire::OutFrame& frame);
  void commit();
  std::size_t cut_chunk();

  /// In the order in which they go to the wire; of the first piece, written_ bytes are written already.
  base::Fifo<Piece> committed_;
  std::size_t written_ = 0;
  bool has_chunk_ = false;        ///< the last pieces of committed_ are chunks
  bool has_left_frames_ = false;  ///< the last gather left frames in control_
  std::vector<wire::Bytes> control_;
  wire::Bytes spare_;  ///< the memory of a buffer that was written, for the next one
  std::deque<Bulk> bulk_;
  std::deque<Lent> lent_;  ///< by the messages whose segments the peer has not read, the oldest first
  std::uint64_t lent_bytes_ = 0;
  std::uint64_t queued_bytes_ = 0;
};

}  // namespace caftan::net
