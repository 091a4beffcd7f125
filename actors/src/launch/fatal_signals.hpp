/// The last line of a process that is killed by a signal.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace caftan::actors {

/// How the line begins that a worker process adds to its log; the addresses of the calls follow.
inline constexpr std::string_view kKilledBy = "-- killed by ";

/// While an object of this class lives, the words for a fatal signal (a bad access, an abort) are written before the
/// signal ends the process. A handler that other code has set, a sanitizer's for instance, stays. Nothing is written
/// for a stack that has overflown: the handler has no other one to run on.
/// Threads: one; at most one object at a time in a process, as signals and what is written for them are the process's.
class FatalSignals {
 public:
  struct Words {
    std::string line{};  ///< for standard error
    /// What summary.json is to hold before and behind the seconds since this object was made; empty = it is not
    /// written.
    std::string summary{};
    std::string rest{};
  };
  /// @param words         what is written for a signal
  /// @param summary_file  absolute; if the words have a summary
  /// @param stack         whether standard error gets the addresses of the calls, too
  /// @param reserve       a descriptor that is closed before the summary is written, to make room for it; -1 = none
  FatalSignals(const std::function<Words(int number)>& words, const std::string& summary_file, bool stack,
               int reserve = -1);
  ~FatalSignals();
  FatalSignals(const FatalSignals&) = delete;
  FatalSignals& operator=(const FatalSignals&) = delete;

 private:
  std::vector<Words> words_;
  std::string fresh_;  // the path at which the summary is written before it is renamed
  std::string file_;
};

}  // namespace caftan::actors
