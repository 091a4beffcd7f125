/// The kernel's refusal to read another process's memory, where it would not refuse: a filter of system calls.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace caftan::test {

/// Makes process_vm_readv fail with EPERM in this thread, in the threads it starts and in what these execute, for good.
/// @param own_too  a process does not read its own memory either; else it does, as under Yama
/// Returns whether the kernel took the filter.
inline bool refuse_reading(bool own_too) {
  const auto own = static_cast<std::uint32_t>(::getpid());
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      // Number 0 is no process: then nothing but the refusal is left.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own_too ? 0U : own, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof *code, code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace caftan::test
