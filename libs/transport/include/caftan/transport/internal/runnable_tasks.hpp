/// `RunnableTasks`: how many threads of the machine run or could run now. Rule: docs/protocols/spin.md, SP-8.
#pragma once

#include <cstdint>

namespace caftan::transport {

/// Threads: one at a time.
class RunnableTasks {
 public:
  RunnableTasks() = default;
  ~RunnableTasks();
  RunnableTasks(const RunnableTasks&) = delete;
  RunnableTasks& operator=(const RunnableTasks&) = delete;

  /// Returns their number without the calling thread; 0 if the system does not say it. Keeps the file open.
  std::uint32_t read() noexcept;

 private:
  int fd_ = -1;
};

}  // namespace caftan::transport
