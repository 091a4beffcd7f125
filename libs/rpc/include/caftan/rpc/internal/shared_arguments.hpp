/// `SharedArguments`: what all requests of a group call have in common, encoded once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/tensor/codec.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::rpc {

/// Threads: one, that of the group call.
struct SharedArguments {
  wire::Bytes body;
  /// The tensors, encoded with the first request that was sent, and what that request had recorded of them.
  std::optional<tensor::EncodedTensors> tensors{};
  std::vector<std::uint8_t> recorded{};
};

}  // namespace caftan::rpc
