/// `ByeBody`: the body of the frame with which a peer leaves (docs/protocols/wire.md, frame 3).
#pragma once

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::wire {

struct ByeBody {
  Error reason;  ///< why the sender's run failed; Errc::ok: the sender leaves in good order

  /// Encodes the body: no bytes for Errc::ok, and for a reason that cannot be encoded.
  Bytes encode() const;
  /// Errors: malformed_payload.
  static Result<ByeBody> decode(ByteView bytes);
};

}  // namespace caftan::wire
