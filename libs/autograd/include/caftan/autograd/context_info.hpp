/// `ContextInfo`: one autograd context in the list of a worker, `Worker::autograd_contexts`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/ids.hpp"

namespace caftan::autograd {

/// What one worker knows of one context, for logs, metrics and tests.
struct ContextInfo {
  ContextId id;
  std::string creator;               ///< name of the worker that made it
  base::Duration age{};              ///< since this worker made or entered it
  std::vector<std::string> workers;  ///< names of the workers with which this worker exchanged calls of the context
  std::size_t sent = 0;              ///< recorded messages that left here
  std::size_t received = 0;          ///< recorded messages that arrived here
  std::uint64_t bytes = 0;           ///< bytes of the recorded tensors and of the gradients
  std::uint64_t passes = 0;          ///< decided passes, as far as known here
  std::size_t running = 0;  ///< passes whose graph is in work here; a failed pass counts until its last node has ended
};

}  // namespace caftan::autograd
