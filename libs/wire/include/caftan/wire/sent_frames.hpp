/// `SentFrames`: what a worker has sent, as a row of a run's summary and of `Worker::traffic()`.
#pragma once

#include <cstdint>
#include <string>

namespace caftan {

/// What a worker has sent of one kind of frame, or of one type of message between actors.
struct SentFrames {
  std::string kind;  ///< `call`, `response`, ...; of messages between actors their name: "rref.fork"
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;  ///< headers included

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& kind& frames& bytes;
  }
};

}  // namespace caftan
