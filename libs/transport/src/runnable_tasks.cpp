#include "caftan/transport/internal/runnable_tasks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace caftan::transport {

RunnableTasks::~RunnableTasks() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint32_t RunnableTasks::read() noexcept {
  if (fd_ < 0) fd_ = ::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  char text[128];
  const ssize_t size = fd_ < 0 ? -1 : ::pread(fd_, text, sizeof text - 1, 0);
  if (size <= 0) return 0;
  text[size] = '\0';
  unsigned runnable = 0;
  // "0.20 0.18 0.12 1/80 11206": the fourth field is running/all threads.
  if (std::sscanf(text, "%*s %*s %*s %u/", &runnable) != 1) return 0;
  return std::max(runnable, 1U) - 1;
}

}  // namespace caftan::transport
