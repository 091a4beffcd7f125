/// Waits for what happens to a file or in a folder.
#pragma once

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>

#include "command.hpp"

namespace caftan::test {

class FileWatch {
 public:
  /// @param events  of inotify(7), from now on
  FileWatch(const std::filesystem::path& path, std::uint32_t events) : fd_(::inotify_init1(IN_CLOEXEC)) {
    ::inotify_add_watch(fd_, path.c_str(), events);
  }
  ~FileWatch() { ::close(fd_); }
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  /// Waits for further events. Returns false if they do not come.
  bool wait_for(int events) {
    while (events > 0) {
      const int came = read(kPatience);
      if (came == 0) return false;
      events -= came;
    }
    return true;
  }
  /// Forgets the events that have come.
  void drain() {
    while (read(std::chrono::milliseconds(0)) > 0) {
    }
  }

 private:
  int read(std::chrono::milliseconds limit) const {
    pollfd waited{fd_, POLLIN, 0};
    if (::poll(&waited, 1, static_cast<int>(limit.count())) != 1) return 0;
    alignas(inotify_event) std::array<char, 4096> bytes{};
    const ssize_t size = ::read(fd_, bytes.data(), bytes.size());
    int events = 0;
    for (ssize_t at = 0; at < size; ++events) {
      at +=
          static_cast<ssize_t>(sizeof(inotify_event) + reinterpret_cast<const inotify_event*>(bytes.data() + at)->len);
    }
    return events;
  }

  const int fd_;
};

}  // namespace caftan::test
