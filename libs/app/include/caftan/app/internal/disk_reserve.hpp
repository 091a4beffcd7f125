/// Room on a disk that is set aside for what has to be written when the disk is full.
#pragma once

#include <cstddef>
#include <filesystem>
#include <utility>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// A file without a name, so that nothing is left of it when the process ends, whatever the cause. Threads: one.
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
  /// Returns the descriptor of the file: closing it gives the room back, too, for example in a signal handler. -1 when
  /// the room was given back.
  int descriptor() const noexcept { return descriptor_; }

 private:
  explicit DiskReserve(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace caftan::app
