/// `Limits`: what one side takes from a peer, and how much may wait for that peer. The members are the keys of
/// `[limits]` in application files and have their defaults, except `segments`, which has no key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "caftan/wire/message_limits.hpp"

namespace caftan::net {

/// The limits of one side of a session.
struct Limits : wire::MessageLimits {
  /// Bytes of requests outstanding to one peer, replies included, >= 1; then callers wait. The hello calls it window.
  std::uint64_t send_queue = std::uint64_t{256} << 20;
  /// The most requests outstanding to one peer; further callers wait. A hello does not carry this limit: a peer's
  /// Limits have the default here.
  std::size_t pending_calls = 10000;
  /// Bytes of memory that this side shares with other processes of its host. Channels of kind shm take a quarter of
  /// them for their rings, and beyond that stay on sockets (docs/protocols/shm.md, DP-8). In no hello.
  std::uint64_t shared_memory = std::uint64_t{256} << 20;
  /// Bytes of each ring of a channel of kind shm, 4 KiB to 16 MiB. In no hello as a limit.
  std::uint64_t shm_ring = 64 * 1024;

  bool operator==(const Limits&) const = default;
};

}  // namespace caftan::net
