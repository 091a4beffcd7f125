/// What is said of a process whose workers share it, when a signal kills it: nobody else is there to name it.
#pragma once

#include <string>

namespace caftan::actors {

/// While it lives, a fatal signal (a bad access, an abort) writes one line on standard error before it ends the process
/// as it would have done anyway. A handler that somebody else has set, a sanitizer's for instance, stays.
/// Threads: one; at most one object at a time.
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
