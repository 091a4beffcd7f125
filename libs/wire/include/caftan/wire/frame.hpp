/// The frame: what one session sends over one channel, after the handshake. Layout and rules: docs/protocols/wire.md.
///
///     frame   = header (48 bytes) sections body table
///     section = type (u16) flags (u16) size (u32) bytes      unknown ones are skipped unless their flag says critical
///
/// The bytes of tensors follow later as `chunk` frames, so that a large message never delays the frames behind it; or
/// the frame says where they lie in the sender's memory, and the receiver reads them there (docs/protocols/bulk.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::wire {

/// What a frame is about. Numbers travel on the wire: never reuse one.
enum class FrameKind : std::uint8_t {
  ping = 1,  ///< answered by pong; both only show that bytes progress
  pong = 2,
  bye = 3,    ///< the sender sends nothing more; ends the session in order
  chunk = 4,  ///< the next bytes of the oldest message that lacks bytes of chunks
  taken = 5,  ///< the segments that the receiver of this frame has lent with its oldest message have been read
  ended = 6,  ///< so many one-way calls of the receiver of this frame have ended: `call` is their number

  call = 10,    ///< run a function; its reply is a `response`
  create = 11,  ///< run a function or constructor and keep its value as an RRef; its reply is a `response`
  fetch = 12,   ///< send the value of an RRef; its reply is a `response`
  method = 13,  ///< run a method on the value of an RRef; its reply is a `response`
  op = 14,      ///< run a pure ATen operator; its reply is a `response`
  response = 18,
  cancel = 19,  ///< the caller gave up; has no reply

  actor_message = 20,  ///< a registered message for an exported actor; with a call id it is a request
  actor_reply = 21,    ///< the reply to an actor_message that is a request
  down = 22,           ///< a watched actor ended
  exit = 23,           ///< an exit signal for an actor
  monitor = 24,
  demonitor = 25,
  link = 26,
  unlink = 27,
};

inline constexpr std::size_t kFrameKinds = 32;  ///< larger than the number of every kind: frame.cpp checks that

/// Returns the enumerator's name; empty for a kind that this version does not know.
std::string_view name_of(FrameKind kind) noexcept;

/// Returns whether `kind` is one this version knows.
inline bool is_known(FrameKind kind) noexcept { return !name_of(kind).empty(); }

/// What a section holds. Numbers travel on the wire: never reuse one.
enum class SectionType : std::uint16_t {
  rrefs = 1,        ///< the manifest of references; read before anything else (RR-3)
  autograd = 2,     ///< the autograd context to which a call belongs
  chain = 3,        ///< the objects held by the call chain, for would_deadlock
  bulk = 4,         ///< sizes of the tensor segments that follow as chunks: u64 each
  target = 5,       ///< the RRef that a fetch, a method or the creation of a method's result is about
  depth = 6,        ///< u8: calls that wait for this one; left out for none
  error_kinds = 7,  ///< for a `response` that is an error: the application's kinds of the error and of its causes
  grad_mode = 8,    ///< u8 0: the caller's grad mode is off; left out while it is on
  places = 9,  ///< where the tensor segments lie in the sender's memory: u64 each, 0 = the segment follows as chunks
};
/// Flag of a section: a reader that does not know its type refuses the frame.
inline constexpr std::uint16_t kSectionCritical = 1;
inline constexpr std::size_t kSectionHeaderSize = 8;  ///< bytes of type, flags and size

inline constexpr std::uint8_t kFlagError = 1;  ///< flag of a `response` or `actor_reply`: the body is an Error

/// The fixed part in front of every frame.
struct FrameHeader {
  std::uint32_t sections_size = 0;  ///< bytes
  std::uint32_t body_size = 0;      ///< bytes of the body; of a chunk, the bytes that it carries
  std::uint32_t table_size = 0;     ///< bytes of the tensor table
  FrameKind kind{};
  std::uint8_t flags = 0;
  std::uint16_t cpu = 0;           ///< reserved: written as it is here, ignored when read
  std::uint64_t call = 0;          ///< id of the request, 0 = none: a call without a reply
  std::uint64_t remaining_us = 0;  ///< microseconds for which the caller still waits, 0 = for ever
  std::uint64_t trace = 0;
  std::uint64_t bulk_size = 0;  ///< bytes of the tensors, whether they follow as chunks or are lent

  /// Returns the bytes that follow in this frame.
  std::uint64_t payload_size() const noexcept { return std::uint64_t{sections_size} + body_size + table_size; }
};
/// Bytes of an encoded header.
inline constexpr std::size_t kFrameHeaderSize = 48;
inline constexpr std::size_t kMaxChunk = 256 * 1024;  ///< bytes of one chunk frame at most
/// Bytes from which on a segment is lent, where the peer reads this process's memory.
inline constexpr std::uint64_t kLentFrom = 64 * 1024;

/// Writes the 48 bytes of `header` to `to`.
void encode_header(const FrameHeader& header, std::byte* to) noexcept;

/// Reads a header from 48 bytes.
/// Errors: malformed_payload (unknown kind, reserved flags, sizes that cannot be).
Result<FrameHeader> decode_header(const std::byte* from);

/// Appends the header of a section whose `size` bytes the caller appends next.
void begin_section(Bytes& sections, SectionType type, std::uint16_t flags, std::size_t size);

/// Appends one section.
void append_section(Bytes& sections, SectionType type, std::uint16_t flags, ByteView content);

/// Walks sections without trusting them.
class SectionReader {
 public:
  /// One section; its content is a view of the bytes that SectionReader walks.
  struct Section {
    SectionType type;
    std::uint16_t flags;
    ByteView content;
  };
  explicit SectionReader(ByteView sections) : rest_(sections) {}
  /// Returns the next section, nullopt at the end.
  /// Errors: malformed_payload (a size beyond the end).
  Result<std::optional<Section>> next();

 private:
  ByteView rest_;
};

}  // namespace caftan::wire
