/// The bytes of handshake messages. The layout is written out by hand, not through the archives, because the header,
/// the version range of a hello and the whole of a reject must stay readable to every version there will ever be
/// (HS-6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "caftan/base/result.hpp"
#include "caftan/net/internal/handshake.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::net::handshake {

enum class Kind : std::uint8_t { client_hello = 1, server_hello = 2, client_proof = 3, welcome = 4, reject = 5 };

inline constexpr std::string_view kMagic{"CAFTAN\0\1", 8};
inline constexpr std::size_t kHeaderSize = 13;  ///< magic number, kind u8, size of the payload u32
inline constexpr std::size_t kMaxPayload = kMaxHandshakeMessage - kHeaderSize;
inline constexpr std::size_t kProofSize = sizeof(Proof);

struct Hello {
  Introduction introduction;
  Nonce nonce{};
};

struct Reject {
  Errc code = Errc::protocol_mismatch;
  std::string text;
};

/// Returns the whole size of the message that begins with `start`, or 0 while its header is not complete.
/// Errors: malformed_payload, as soon as a byte shows that this is no handshake message.
Result<std::size_t> message_size(wire::ByteView start);

/// Precondition: message_size(message) == message.size().
inline Kind kind_of(wire::ByteView message) { return static_cast<Kind>(message[kMagic.size()]); }
inline wire::ByteView payload_of(wire::ByteView message) { return message.subspan(kHeaderSize); }

/// @param room  bytes that the caller appends to the payload: the server's proof
wire::Bytes encode_hello(Kind kind, const Hello& hello, std::size_t room);
wire::Bytes encode_proof(const Proof& proof);
wire::Bytes encode_welcome();
/// Cuts the text to kMaxRejectText bytes.
wire::Bytes encode_reject(const Error& error);

/// Reads only the first bytes of a hello, which are the same in all versions. Errors: malformed_payload.
Result<VersionRange> decode_versions(wire::ByteView payload);
/// Bytes after the known fields are a later version's and are skipped. Errors: malformed_payload.
Result<Hello> decode_hello(wire::ByteView payload);
/// A code that this version does not know becomes protocol_mismatch; the text keeps its number. Errors:
/// malformed_payload.
Result<Reject> decode_reject(wire::ByteView payload);

/// Returns whether a name or address has no control characters, which would forge lines in logs.
bool is_printable(std::string_view text) noexcept;

}  // namespace caftan::net::handshake
