/// What a process does with the memory that tensors leave behind.
#pragma once

namespace caftan {

/// Lets this process keep up to 512 MiB of freed memory for its next allocations, and serves allocations of up to 32
/// MiB from there. Without this, glibc returns the memory of each large tensor to the kernel, and the next tensor of
/// that size pays for fresh pages: training the net of configs/parameter_server.toml takes 1.35 times as long. Resident
/// memory then stays near its highest value. `Program::main` calls this in each process of a run; a program with a main
/// of its own may.
///
/// Changes nothing where the user has settings of malloc in the environment (MALLOC_..._, GLIBC_TUNABLES with
/// glibc.malloc), or where malloc is not glibc's. Threads: any; meant for the beginning of main.
void keep_freed_memory();

}  // namespace caftan
