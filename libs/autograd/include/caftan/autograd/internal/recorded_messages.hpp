/// `RecordedMessages`: what the pass protocol asks about the messages that a context recorded on this worker. The
/// context's owner implements it over its table of S and R nodes.
#pragma once

#include <optional>
#include <vector>

#include "caftan/autograd/internal/messages.hpp"

namespace caftan::autograd {

/// Threads: those that call the protocol's classes; user threads may record meanwhile.
class RecordedMessages {
 public:
  virtual ~RecordedMessages() = default;
  /// Returns the receiver of `message`, if S(message) is recorded here (DA-16).
  virtual std::optional<WorkerLife> receiver_of(AutogradMessageId message) const = 0;
  /// Returns all messages sent from here.
  virtual std::vector<AutogradMessageId> sends() const = 0;
};

}  // namespace caftan::autograd
