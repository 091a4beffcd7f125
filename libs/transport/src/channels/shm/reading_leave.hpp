/// `ReadingLeave`: which other process may read this one's memory where Yama asks for it, the part of the kernel that
/// may keep processes of one user from reading each other. Rules: docs/protocols/bulk.md, "Set-up".
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"

namespace caftan::transport {

/// The kernel keeps one process with leave for each process, so this is no state of a Worker. Threads: any.
class ReadingLeave {
 public:
  /// Sets in the kernel which process has the leave, 0 = none. Returns 0, or errno.
  using Set = int (*)(pid_t process);
  explicit ReadingLeave(Set set) noexcept : set_(set) {}

  /// Gives `process` the leave, until `take_back` was called as often. Errors: unsupported (another process has it, or
  /// the kernel refuses).
  Result<void> give(pid_t process);
  void take_back();

 private:
  const Set set_;
  base::Mutex mutex_;
  pid_t process_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::size_t times_ CAFTAN_GUARDED_BY(mutex_) = 0;  // given and not taken back
};

/// Returns the leave of this process; null where the kernel asks for none.
ReadingLeave* leave_of_process();

/// Returns kernel.yama.ptrace_scope: 0 where processes of one user read each other, 1 with leave, 2 and 3 not.
int yama_scope();
/// Returns whether this process has CAP_SYS_PTRACE: Yama's scopes 1 and 2 do not bind it.
bool may_trace();
/// Returns whether no process may read another one's memory.
constexpr bool is_reading_refused(int scope, bool may_trace) noexcept {
  return scope > 2 || (scope == 2 && !may_trace);
}

}  // namespace caftan::transport
