#include "channels/shm/reading_leave.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace caftan::transport {
namespace {

int set_in_kernel(pid_t process) {
  return ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(process), 0, 0, 0) == 0 ? 0 : errno;
}

}  // namespace

Result<void> ReadingLeave::give(pid_t process) {
  const base::LockGuard lock(mutex_);
  if (times_ > 0 && process_ != process) {
    return Error(Errc::unsupported, "kernel.yama.ptrace_scope is 1, and another process has the leave to read");
  }
  if (times_ == 0) {
    if (const int failed = set_(process); failed != 0) {
      return Error(Errc::unsupported,
                   std::string("kernel.yama.ptrace_scope is 1, and prctl: ") + std::strerror(failed));
    }
    process_ = process;
  }
  ++times_;
  return {};
}

void ReadingLeave::take_back() {
  const base::LockGuard lock(mutex_);
  if (--times_ == 0) set_(0);
}

ReadingLeave* leave_of_process() {
  static ReadingLeave leave(set_in_kernel);
  return yama_scope() == 1 ? &leave : nullptr;
}

int yama_scope() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope;
}

bool may_trace() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1U << CAP_SYS_PTRACE)) != 0;
}

}  // namespace caftan::transport
