/// What a worker has sent, for benchmarks that count messages.
#pragma once

#include <cstdint>

#include "caftan/actors/worker.hpp"

namespace caftan::bench {

/// Returns how many messages of all kinds the worker has sent, which no sign of life is among.
inline std::uint64_t sent_messages(Worker& worker) {
  std::uint64_t messages = 0;
  for (const SentFrames& sent : worker.traffic()) {
    if (sent.kind != "ping" && sent.kind != "pong") messages += sent.frames;
  }
  return messages;
}

}  // namespace caftan::bench
