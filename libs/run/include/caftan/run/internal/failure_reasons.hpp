/// `FailureReasons`: why a run has failed, of all that its workers and processes report: which reason counts, which
/// worker the verdict names. Pure. Rules RN-2, RN-13 and RN-23: docs/protocols/run.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/error.hpp"

namespace caftan::run {

struct Verdict {
  enum class Outcome { success, failure, interrupted } outcome = Outcome::success;
  int exit_code = 0;
  std::string error{};                 ///< one line; empty without failure
  Errc code = Errc::ok;                ///< code of the failure; peer_down where a process has ended
  std::optional<std::size_t> blame{};  ///< the worker whose log says more
  /// How that worker's process ended; empty = the process did not end, the worker failed otherwise.
  std::string death{};
};

/// Parameters that name a worker are its index in the names.
class FailureReasons {
 public:
  /// @param workers  their names
  explicit FailureReasons(std::vector<std::string> workers) : names_(std::move(workers)) {}

  /// Returns whether an error is only a consequence of another worker's end.
  static bool is_echo(const Error& error);

  /// A worker has failed. The first error counts, but for one that is no consequence after one that is.
  /// @param at_start  before the worker was ready; a worker elsewhere does not report that it is ready
  void add(std::size_t worker, const Error& error, bool at_start);
  /// The process of a worker is dead or silent. The first death counts: before errors of other workers that are added
  /// later, and before those added earlier if the process ended on its own (RN-23).
  /// @param text  behind the worker's name
  /// @param on_its_own  the process had not read that the run shall end
  void add_death(std::size_t worker, std::string text, bool on_its_own);
  /// The run as a whole has failed: wall, disk. The first such error counts.
  void add_general(const Error& error);

  /// Returns whether a worker has failed, or the run as a whole.
  bool has_error() const noexcept { return failure_ || general_; }
  bool has_failed_worker() const noexcept { return failure_.has_value(); }
  /// Returns whether the error of a worker that counts is only a consequence.
  bool has_echo() const { return failure_ && is_echo(failure_->error); }
  /// Returns the worker whose process is dead or silent, with which the run ends.
  const std::optional<std::size_t>& dead() const noexcept { return dead_; }

  /// Returns the reason that counts, shortened for other hosts; Errc::ok = there is none.
  Error reason() const;
  /// Returns a failure with its text and blame, success where there is no reason.
  Verdict verdict() const;

 private:
  struct Failure {
    std::size_t worker = 0;
    Error error;
    bool at_start = false;
  };
  /// Which kind of reason counts, as far as is known: none; one that concerns no single worker; the death or silence of
  /// a process; an error of one worker.
  enum class Cause : std::uint8_t { none, general, death, failure };
  Cause cause() const;

  const std::vector<std::string> names_;
  std::optional<Failure> failure_;
  std::optional<Error> general_;
  std::optional<std::size_t> dead_;
  std::string death_text_;
  bool death_is_first_ = false;  ///< the death comes before `failure_`, if that is of another worker
};

}  // namespace caftan::run
