/// Standard output or error of a launcher. The launcher goes on even if the program at the other end of the pipe does
/// not read (RN-7).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace caftan::actors {

/// Writes as much text as the reader makes room for and keeps the rest. Threads: one.
class OutputStream {
 public:
  explicit OutputStream(int fd) noexcept : fd_(fd) {}

  /// Writes the text, behind the text that waits for room; keeps what does not fit.
  void write(std::string_view text);
  /// Writes the text if it can be written now. Returns whether it was.
  bool offer(std::string_view text);
  /// Writes as much of the waiting text as there is room for now.
  void flush();

  int fd() const noexcept { return fd_; }
  /// Returns how many bytes wait for room.
  std::size_t waiting() const noexcept { return waiting_.size(); }
  /// Forgets what waits.
  void drop() noexcept { waiting_.clear(); }
  /// Returns the number of the first error by which text was lost; 0 if there was none. A closed pipe is no error: it
  /// has no reader any more.
  int error() const noexcept { return error_; }

 private:
  int fd_;
  int error_ = 0;
  std::string waiting_;
};

}  // namespace caftan::actors
