/// What the scenarios of `./caftan bench scale` share: what processes have used up to a moment, the costs of one unit
/// of what was done between two moments, and lines of progress. A scenario prints each part that it has measured as one
/// line of JSON; scale.py runs the scenarios in several sizes and compares. Start with `Meter`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "measure.hpp"

namespace caftan::bench {

/// The memory of one process.
struct Memory {
  std::int64_t live = 0;      ///< bytes that malloc counts as allocated
  std::int64_t resident = 0;  ///< bytes that are in memory

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& live& resident;
  }
};
Memory memory_here();

/// What the processes of a scenario have used up to one moment.
struct Reading {
  std::chrono::steady_clock::time_point time{};
  Nanoseconds cpu{0};          ///< of all processes that the scenario looks at
  std::uint64_t messages = 0;  ///< that the scenario's workers have sent; those of the readings themselves are left out
  std::vector<Memory> memory{};  ///< of the places of the Meter, in their order
};

/// What a part prints of one unit beside CPU time and messages.
struct Prints {
  bool memory = true;
  bool wall = true;
};

/// Reads before and after a part, and prints the costs of one unit. Threads: one.
class Meter {
 public:
  /// @param places  names of the processes whose memory each reading has, for example "user"
  Meter(std::vector<std::string> places, std::function<Reading()> read)
      : places_(std::move(places)), read_(std::move(read)) {}

  /// Does `work` and prints a line: the name of the part, the number of units, and the costs of one.
  void part(const std::string& name, std::size_t units, Prints prints, const std::function<void()>& work);
  /// As part, from readings that were made before and after the work.
  void print(const std::string& name, std::size_t units, Prints prints, const Reading& before,
             const Reading& after) const;
  /// The running part has sent so many messages only in order to see whether its work is done: they are left out.
  void leave_out(std::uint64_t messages) { left_out_ += messages; }

 private:
  const std::vector<std::string> places_;
  const std::function<Reading()> read_;
  std::uint64_t left_out_ = 0;
};

/// Prints how far a long loop is, at most twice a second.
class Progress {
 public:
  Progress(std::string what, std::size_t of);
  void at(std::size_t done);

 private:
  const std::string what_;
  const std::size_t of_;
  std::chrono::steady_clock::time_point next_;
};

/// Ends the program with an error.
[[noreturn]] void fail_scale(const std::string& what);

/// Looks every `pause` whether `done`; ends the program if that is not so within two minutes.
void wait_until(const std::string& what, const std::function<bool()>& done,
                Nanoseconds pause = std::chrono::milliseconds{1});

/// Lets this process open as many descriptors as it may; ends the program if these are fewer than `count`.
void need_descriptors(std::size_t count);

/// Returns the value; ends the program if there is none.
template <class T>
T value_or_fail(Result<T> result, const std::string& what) {
  if (!result) fail_scale(what + ": " + result.error().message());
  return std::move(result).value();
}

// The scenarios, each with its full size in scale.py. They print their parts.

void scale_references(std::size_t references);
void scale_calls(std::size_t open_calls);
void scale_contexts(std::size_t contexts);
void scale_workers(std::size_t workers);
void scale_processes(std::size_t processes);
void scale_connections(std::size_t connections);

}  // namespace caftan::bench
