/// `SharedMemory`: memory that two processes of one user map, in a file without a name. Made by one of them, and taken
/// over a Unix-domain socket by the other. Rules: docs/protocols/shm.md, DP-2, DP-6 and DP-8.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "caftan/base/result.hpp"

namespace caftan::transport {

class SharedMemory {
 public:
  /// Makes memory of `size` bytes, all of it allocated, which neither side can make smaller or larger.
  /// Errors: limit_exceeded (no memory, no descriptor), unsupported (the kernel has no such files).
  static Result<SharedMemory> make(std::size_t size);
  /// Maps memory that a peer sent, after its kind, its seals and its size were checked. Closes `fd` if it is not taken.
  /// @param least,most  how many bytes it may have
  /// Errors: malformed_payload (another kind of descriptor, not sealed, another size), limit_exceeded (no memory).
  static Result<SharedMemory> take(int fd, std::size_t least, std::size_t most);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// The descriptor, for the other side; -1 after `close_descriptor`.
  int fd() const noexcept { return fd_; }
  void close_descriptor() noexcept;
  /// Returns whether `fd` is a descriptor of this memory.
  bool is_same(int fd) const noexcept;

 private:
  SharedMemory(int fd, std::size_t size) noexcept : fd_(fd), size_(size) {}
  Result<void> map();

  int fd_;
  std::size_t size_;
  std::byte* data_ = nullptr;
  dev_t device_ = 0;
  ino_t node_ = 0;
};

/// Returns why this machine has no shared memory of this kind, for plans and logs. Errors: unsupported, limit_exceeded.
Result<void> check_shared_memory();

}  // namespace caftan::transport
