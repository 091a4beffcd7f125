/// What is said of a process whose workers share it, when a signal kills it: nobody else is there to name it.
#pragma once

#include <string>

namespace caftan::actors {

/// While it lives, a fatal signal (a bad access, an abort) writes one line on standard error before it ends the process
/// as it would have done anyway. A handler that somebody else has set, a sanitizer's for instance, stays. Nothing is
/// written for a stack that has overflown: the handler has no other one to run on.
/// Threads: one; at most one object at a time in a process, as signals and what is written for them are the process's.
class FatalSignals {
 public:
  /// @param run        the run's name
  /// @param directory  its folder
  FatalSignals(const std::string& run, const std::string& directory);
  ~FatalSignals();
  FatalSignals(const FatalSignals&) = delete;
  FatalSignals& operator=(const FatalSignals&) = delete;
};

}  // namespace caftan::actors
