/// What was sent, by kind of frame and by type of message between actors: for the end of a run and for tests.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "caftan/wire/frame.hpp"

namespace caftan::net {

/// Threads: none of its own and no lock.
class Traffic {
 public:
  struct Sum {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;  ///< headers included
    bool operator==(const Sum&) const = default;
  };

  /// Counts one frame, and the chunks in which its tensors follow.
  /// @param message  of an actor_message: which type, by its id on the wire; else 0
  /// @param bytes    of the frame itself
  /// @param bulk     bytes of its tensors
  void add(wire::FrameKind kind, std::uint64_t message, std::uint64_t bytes, std::uint64_t bulk);
  Traffic& operator+=(const Traffic& other);

  /// Returns what was sent of one kind of frame; for actor_message the sum over all types of message.
  Sum of(wire::FrameKind kind) const { return kinds_[static_cast<std::size_t>(kind)]; }
  /// Returns the part of actor_message that each type of message has.
  const std::map<std::uint64_t, Sum>& messages() const noexcept { return messages_; }

 private:
  std::array<Sum, wire::kFrameKinds> kinds_{};
  std::map<std::uint64_t, Sum> messages_;
};

}  // namespace caftan::net
