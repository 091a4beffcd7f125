/// What a program asks libc for: memory, mutexes and the time. The functions of libc are replaced in the program that
/// links counted_functions.cpp, also for what its shared libraries call. Not with sanitizers, which replace them too.
#pragma once

#include <cstdint>
#include <string>

namespace caftan::test {

/// Calls of the threads that are counted, since the program began.
struct FunctionCounts {
  std::uint64_t allocations = 0;  ///< malloc, calloc, realloc and the functions for aligned memory, and so operator new
  std::uint64_t locks = 0;        ///< pthread_mutex_lock, and so std::mutex::lock
  std::uint64_t clocks = 0;       ///< clock_gettime, and so std::chrono's clocks
};

/// Counts what this thread calls from now on. Other threads are not counted: what a thread that keeps time does depends
/// on how long all takes.
void count_this_thread() noexcept;

FunctionCounts function_counts() noexcept;
FunctionCounts operator-(const FunctionCounts& later, const FunctionCounts& earlier) noexcept;

/// Which of the functions below are recorded.
enum class Counted : std::uint8_t { none, allocations, locks, clocks };

/// From now on the stack of each call of such a function is kept, up to a fixed number; `none` ends that.
void record_stacks(Counted which) noexcept;
/// Returns the stacks that were kept, one per paragraph, as the system's `backtrace_symbols` writes them: addr2line
/// turns an address in the program into a line.
std::string recorded_stacks();

}  // namespace caftan::test
