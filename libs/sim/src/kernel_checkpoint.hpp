/// What of a kernel stands in one file of a checkpoint, at a border.
#pragma once

#include "caftan/sim/internal/kernel.hpp"

namespace caftan::sim {

/// Sets `state` to the bytes of a process's state. Throws what its `serialize` throws.
void write_state(const LpTable& table, const LpEntry& entry, wire::Bytes& state);

/// Writes and reads the processes, pending events, streams and records of a kernel. Threads: one at a time.
class KernelCheckpoint {
 public:
  explicit KernelCheckpoint(Kernel& kernel) noexcept : kernel_(kernel) {}

  /// Errors: those of Kernel::save. The values of all pending events are there.
  Result<wire::CheckpointFile> save() const;
  /// Errors: those of Kernel::load.
  Result<void> load(const wire::CheckpointFile& file);

 private:
  struct Head;
  void load_processes(const Head& head, wire::ByteView bytes, std::uint64_t& id);

  Kernel& kernel_;
};

}  // namespace caftan::sim
