/// Reads the messages of backward passes from tapped frames: `pass_message`.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "caftan/autograd/internal/messages.hpp"
#include "caftan/remote/internal/address.hpp"
#include "caftan/remote/internal/message_registry.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::test {

/// Returns the message of a pass that a frame carries, if it does. The tensors of a gradient are not looked at.
inline std::optional<autograd::PassMessage> pass_message(const testing::Frame& frame) {
  if (frame.header.kind != wire::FrameKind::actor_message) return {};
  wire::ByteView body = frame.payload().subspan(frame.header.sections_size, frame.header.body_size);
  body = body.subspan(2 * wire::encode(remote::Address()).value().size());
  std::uint64_t type = 0;
  std::memcpy(&type, body.data(), sizeof type);
  body = body.subspan(sizeof type);
  if (type == remote::MessageRegistry::id_of("autograd.gradient")) return wire::decode<autograd::Grad>(body).value();
  if (type != remote::MessageRegistry::id_of("autograd.pass")) return {};
  return wire::decode<autograd::PassMessage>(body).value();
}

/// Returns "Mark", "Grad", ...
inline std::string name_of(const autograd::PassMessage& message) {
  const std::string text = to_string(message);
  return text.substr(0, text.find(' '));
}

}  // namespace caftan::test
