/// `Death`: how a process ended, and the text about it for users.
#pragma once

#include <string>

namespace caftan::run {

/// How a process ended.
struct Death {
  bool by_signal = false;
  int number = 0;     ///< the number of the signal, or the exit code
  std::string why{};  ///< said instead of both, for a process that was lost with its host
};

/// Returns "signal 11 (SIGSEGV)".
std::string name_of_signal(int number);

}  // namespace caftan::run
