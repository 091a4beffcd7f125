/// `make_shm_channel`: a channel that begins on a Unix-domain socket and goes on in rings of shared memory. The socket
/// then carries bells, and its end is the end of the channel. Rules: docs/protocols/shm.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "caftan/transport/channel.hpp"
#include "caftan/transport/internal/shared_memory_budget.hpp"

namespace caftan::transport {

struct ShmChannelOptions {
  /// This side makes the memory, and switches first: the side that dialled.
  bool makes_memory = false;
  std::size_t ring = 64 * 1024;  ///< bytes of each ring: of those it makes, or the most that it takes
  std::uint32_t frames = 64;     ///< reads and writes within 10 s after which this side makes the memory
  /// Both sides read tensors out of each other's memory, if that works (docs/protocols/bulk.md).
  bool lends = false;
  std::string why_not_lent = {};  ///< the reason, if they do not
  /// Gets what Channel::note says, when that changes; may be empty. Threads: any.
  std::function<void(const std::string&)> note = {};
};

/// Notes of a channel: why it stays on its socket, and why large tensors of both directions go through its rings.
std::string note_on_socket(const std::string& why);
std::string note_on_rings(const std::string& why);

/// Makes one end. The channel owns and closes `fd`, a connected and non-blocking Unix-domain socket whose other end is
/// such a channel, too, made with the other value of `makes_memory`.
/// @param share  what the rings take of the memory that this process may share; given back with the channel
std::shared_ptr<Channel> make_shm_channel(PollingExecutor& executor, int fd, const ShmChannelOptions& options,
                                          SharedMemoryBudget::Share share);

}  // namespace caftan::transport
