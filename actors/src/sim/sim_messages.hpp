/// The messages of a partition's actor: frames of other partitions, which cross between workers, and the news of lost
/// workers.
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>

#include "caftan/base/ids.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::actors {

/// One frame, from a partition's actor to that of another one: `sim.frame`.
struct SimFrame {
  wire::Bytes bytes;  ///< as libs/sim writes a frame

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& bytes;
  }
};

/// No session with that life of a worker is left.
struct SimPeerDown {
  WorkerLife peer;
};

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::SimFrame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::SimPeerDown)
