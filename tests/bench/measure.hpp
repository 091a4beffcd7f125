/// What every side of the benchmark shares: a request read from stdin, loops bounded in count and time, a latency
/// distribution, the CPU time of both processes, and one JSON line per answer. Start with `Rig`.
///
/// A side is a process that drives peer processes. It reads one request per line, for example
/// `sync floats=4 think_us=30 calls=20000 seconds=0.5`, and answers each with one line of JSON on stdout, so that
/// report.py can take turns between the sides within one run.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::bench {

using Nanoseconds = std::chrono::nanoseconds;

/// One line of stdin. Every loop ends at `calls` or after `seconds`, whichever comes first.
struct Request {
  std::string measure;
  std::size_t floats = 4;         ///< elements of the float32 tensor that is echoed, 1 to 2^26
  Nanoseconds think{0};           ///< pause between two synchronous calls, at most 1 s
  bool asleep = false;            ///< pause by sleeping instead of by computing
  std::size_t window = 64;        ///< calls in flight in pipelined measures, 1 to 4,096
  std::size_t calls = 20'000;     ///< the most calls of a loop, 1 to 10,000,000
  Nanoseconds time{500'000'000};  ///< the longest time of a loop, 1 ms to 60 s
};

/// Parses `measure key=value ...`; keys are floats, think_us, rest (compute or sleep), window, calls, seconds.
/// Errors: invalid_config for an unknown key or a value outside its range.
Result<Request> parse_request(const std::string& line);

/// A distribution of durations in buckets of 1/128 relative width.
class Histogram {
 public:
  void add(Nanoseconds duration);
  std::uint64_t count() const noexcept { return count_; }
  /// Returns the mean in microseconds, exact; 0 when empty.
  double mean_us() const noexcept;
  /// Returns the duration in microseconds that a share of `quantile` (0 to 1) does not exceed; 0 when empty.
  double quantile_us(double quantile) const;
  /// Returns `[[nanoseconds,count],...]`, ascending, so that several distributions can be added up.
  std::string to_json() const;

 private:
  std::map<std::uint64_t, std::uint64_t> buckets_;  // lower bound in ns -> durations in it
  std::uint64_t count_ = 0;
  std::uint64_t sum_ns_ = 0;
};

/// One reply: a JSON object on one line, keys in the order in which they were added.
class Line {
 public:
  Line& add(const std::string& key, double value);
  Line& add(const std::string& key, std::uint64_t value);
  Line& add(const std::string& key, const std::string& text);
  Line& add_json(const std::string& key, const std::string& json);
  std::string to_string() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

/// Returns the bytes that are allocated in all arenas of this process, as malloc counts them.
std::int64_t live_bytes();
/// Returns the bytes of this process that are in memory.
std::int64_t resident_bytes();

/// CPU time used by all threads of this process, and of its peer processes together.
struct CpuTimes {
  Nanoseconds own{0};
  Nanoseconds peer{0};
};

using Measure = std::function<Line(const Request&)>;

/// Drives the measures of one side. Threads: one.
class Rig {
 public:
  /// @param side   name in every reply, for example "raw unix"
  /// @param peers  the peer processes
  Rig(std::string side, std::vector<pid_t> peers);

  /// Times `call` in a loop, with the request's pause between two calls, after a short warm-up.
  /// The reply's CPU time per call leaves out what the pauses themselves computed.
  Line sync(const Request& request, const std::function<void()>& call) const;
  /// Keeps `request.window` calls open: `submit(slot)` starts one, `wait(slot)` ends it and frees the slot.
  Line pipelined(const Request& request, const std::function<void(std::size_t)>& submit,
                 const std::function<void(std::size_t)>& wait) const;
  /// Sleeps for `request.time` and reports the CPU time both processes used meanwhile.
  Line idle(const Request& request) const;

  CpuTimes cpu_times() const;
  /// Answers requests from stdin until it ends. Prints a first line that names the program.
  /// Returns the exit code: 0, or 2 after a request that is not understood.
  int serve(const std::map<std::string, Measure>& measures) const;

 private:
  Line begin(const Request& request) const;

  std::string side_;
  std::vector<pid_t> peers_;
  std::vector<clockid_t> peer_clocks_;
};

}  // namespace caftan::bench
