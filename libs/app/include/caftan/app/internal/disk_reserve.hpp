/// Room on a disk that is set aside for what has to be written when the disk is full.
#pragma once

#include <cstddef>
#include <filesystem>
#include <utility>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// Has no name: nothing of it is left when the process ends, whatever that dies of. Threads: one.
class DiskReserve {
 public:
  /// Takes `bytes` of the disk that a folder is on. Where a file may not be so long (ulimit -f) it takes nothing.
  /// Errors: io_error (the disk has not so much).
  static Result<DiskReserve> make(const std::filesystem::path& folder, std::size_t bytes);
  DiskReserve(DiskReserve&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  DiskReserve& operator=(DiskReserve&&) = delete;
  ~DiskReserve() { release(); }

  /// Gives the room back.
  void release();
  /// Closing it gives the room back, too, in a handler of a signal for instance; -1 when there is none any more.
  int descriptor() const noexcept { return descriptor_; }

 private:
  explicit DiskReserve(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace caftan::app
