/// Sends the frames down, exit, monitor, link and unlink.
#pragma once

#include "caftan/remote/internal/control_bodies.hpp"
#include "caftan/transport/internal/session.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::remote {

/// Sends a frame of `kind`, unless the session has ended.
template <class Body>
void send_control(transport::Session& session, wire::FrameKind kind, const Body& body) {
  const auto encoded = wire::encode(body);
  if (!encoded) return;
  wire::OutFrame frame;
  frame.header.kind = kind;
  frame.body = *encoded;
  session.writer().send(frame, transport::FlushBy::queue_end);
}

}  // namespace caftan::remote
