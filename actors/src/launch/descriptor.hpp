/// A file descriptor that is closed at the end of its scope.
#pragma once

#include <unistd.h>

namespace caftan::actors {

class Descriptor {
 public:
  /// @param fd  < 0 = none
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace caftan::actors
