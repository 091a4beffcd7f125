/// Calls as frames: what requests and replies look like on their way, sections included. Layout:
/// docs/protocols/wire.md, what sections mean: docs/protocols/call.md.
#pragma once

#include <string>

#include "caftan/actors/worker.hpp"
#include "caftan/rpc/request.hpp"
#include "caftan/transport/internal/session.hpp"
#include "rref/rref_frames.hpp"

namespace caftan::actors {

/// A frame and what its views show. The body of a request or a result stays where it is: it must outlive the frame.
struct EncodedFrame {
  EncodedFrame() = default;
  EncodedFrame(const EncodedFrame&) = delete;  // not copied: the views of the copy would show the original
  EncodedFrame& operator=(const EncodedFrame&) = delete;

  wire::OutFrame frame;
  wire::Bytes sections;
  wire::Bytes body;  ///< of an error
  base::Reused<wire::Bytes> table;
  base::Reused<wire::Bytes> small_tensors;  ///< their bytes, where they are few
};

// The functions below fill an empty frame or payload of their caller, so that none is moved.

/// @param features  of the session: a section is written only if the peer knows it
/// Errors: what cannot be encoded.
Result<void> encode_request(rpc::OutRequest& request, std::uint64_t features, const OutgoingRRefs& handed,
                            EncodedFrame& encoded);
/// Errors: what cannot be encoded.
Result<void> encode_result(rpc::OutReply& reply, std::uint64_t call, const OutgoingRRefs& handed,
                           EncodedFrame& encoded);
Result<void> encode_error(Error error, std::uint64_t call, std::uint64_t features, EncodedFrame& encoded);

/// Takes the arguments or the result in `frame`, whose tensor segments become tensors. The body stays in the frame.
/// Errors: malformed_payload, limit_exceeded.
Result<void> decode_payload(wire::InFrame& frame, const net::Limits& limits, rpc::InPayload& payload);
/// Returns the error that a reply with kFlagError carries, or why it cannot be decoded.
Error decode_error(const wire::InFrame& reply);

// ---- the sections of a request

/// Returns the reference whose object the request is about; an empty id if the request has no section `target`.
Result<RRefId> read_target(const wire::InFrame& request);
/// Returns whether the caller's grad mode is on.
Result<bool> read_grad_mode(const wire::InFrame& request);
/// Returns how deep the call is nested; 0 if the request has no valid section `depth`.
unsigned read_depth(const wire::InFrame& request);
/// Returns the objects whose turn the chain of calls keeps; none if the request has no valid section `chain`.
HeldObjects read_held(const wire::InFrame& request);

}  // namespace caftan::actors
