/// `Supervisor`: what a run does next, from the first process to the last. Pure: events and the time go in, what to do
/// comes out; the launcher does it. There are no restarts: a worker that dies ends the run, and the verdict says who it
/// was.
///
///     starting --all ready--> running --every run() returned--> leaving --all processes gone--> over
///         \--- failure, death, silence, Ctrl-C ---> stopping --run()s returned, or half of stop_timeout--/
///
/// Invariants RN-1 to RN-12: docs/protocols/run.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/error.hpp"
#include "caftan/base/internal/liveness.hpp"
#include "caftan/run/internal/death.hpp"

namespace caftan::actors {

struct SupervisedWorker {
  std::string name{};
  std::string role{};
  int process = 0;
  bool drives = false;
  bool here = true;  ///< run by this launcher; others are on other hosts
};

struct SupervisorOptions {
  std::vector<SupervisedWorker> workers{};
  Duration start_timeout{};
  Duration stop_timeout{};
  Duration heartbeat{};  ///< of the processes; 0 = the workers live and die with the launcher
  std::optional<Duration> wall{};
};

struct Verdict {
  enum class Outcome { success, failure, interrupted } outcome = Outcome::success;
  int exit_code = 0;
  std::string error{};                 ///< one line; empty without failure
  std::optional<std::size_t> blame{};  ///< the worker whose log has more
};

/// Workers are meant by their index in the options.
class Supervisor {
 public:
  enum class Phase { starting, running, stopping, leaving, over };
  enum class Action { stop, leave, kill };

  Supervisor(SupervisorOptions options, TimePoint now);

  // Events. Repeating one has no effect.
  void here(std::size_t worker);
  void ready(std::size_t worker);
  /// Its role's constructor begins, and has returned.
  void making(std::size_t worker);
  void made(std::size_t worker);
  void returned(std::size_t worker, const Error& error);
  void failed(std::size_t worker, const Error& error);
  void left(std::size_t worker);
  /// A process has shown a sign of life; has answered one more stop or leave.
  void alive(int process, TimePoint now);
  void answered(int process);
  /// Another worker has no session with this one any more.
  /// @param reason  shut_down if it left in good order; its farewell if it left because its run failed
  void peer_lost(const std::string& name, const Error& reason, TimePoint now);
  /// @param where  how far the run was, for the text: "episode 121", or empty
  void died(int process, Death death, const std::string& where, TimePoint now);
  /// A process could not be started: the run does not wait for its workers.
  void not_started(int process);
  /// Ctrl-C: the first one stops, the second one kills.
  void interrupt();
  /// The launcher was stopped, or had no core, for so long: it is not counted as time that others have taken (RN-8).
  void unwatched(Duration time);
  /// The launcher itself cannot go on: a full disk, say.
  void broken(const Error& error);

  /// Returns what has to be done now, in this order.
  std::vector<Action> next(TimePoint now);
  /// Returns when `next` must be asked again at the latest.
  TimePoint deadline() const noexcept;

  Phase phase() const noexcept { return phase_; }
  bool is_over() const noexcept { return phase_ == Phase::over; }
  Verdict verdict() const;
  /// Returns why the run has failed so far, shortened for other hosts; Errc::ok = it has not.
  Error reason() const;
  /// Returns the workers that were killed because they had not left, with the reason; empty = none (RN-4).
  std::string stragglers() const;

 private:
  struct Worker {
    SupervisedWorker is;
    bool came = false;
    bool ready = false;
    bool making = false;
    bool made = false;
    bool returned = false;
    bool left = false;
    bool gone = false;  ///< its process, or its session if it is elsewhere
    enum class Late { no, unanswered, running, leaving } late = Late::no;  ///< when it was killed
  };
  struct Pulse {
    std::optional<Liveness> liveness;  ///< from the first sign of life
    int answers = 0;
  };
  struct Failure {
    std::size_t worker = 0;
    Error error;
    bool at_start = false;
  };
  struct Missed {
    Failure failure;
    TimePoint until;
  };

  /// What the run has failed of, of all that is known.
  enum class Cause { none, general, death, failure };
  Cause cause() const;
  /// Whether an error is only a consequence of another worker's end.
  static bool is_echo(const Error& error);

  void begin_stop(TimePoint now);
  void note_failure(std::size_t worker, const Error& error);
  std::string who_lives(bool all_came) const;
  void check_start(TimePoint now);
  void check_made(TimePoint now);
  void check_missed(TimePoint now);
  void check_silent(TimePoint now);
  bool listens() const;
  Worker::Late lateness(const Worker& worker) const;
  bool all_returned() const;
  bool all_gone() const;
  double seconds(TimePoint now) const;
  std::string list(bool Worker::*state) const;

  const SupervisorOptions options_;
  const TimePoint started_;
  std::vector<Worker> workers_;
  std::vector<Pulse> pulses_;  // by process
  int asked_ = 0;              // how many times the processes were asked to stop or to leave
  Phase phase_ = Phase::starting;
  TimePoint phase_deadline_;
  std::optional<TimePoint> all_came_at_;
  TimePoint made_by_ = kNever;  ///< when all constructors must have returned
  TimePoint kill_at_ = kNever;
  int interrupts_ = 0;
  bool killed_ = false;
  bool killed_at_once_ = false;
  bool interrupted_first_ = false;
  std::optional<Failure> failure_;
  std::optional<Error> general_;     ///< of the run as a whole: start, wall, disk
  std::optional<Missed> missed_;     ///< a worker that the others have lost, though its process lives
  std::optional<std::size_t> dead_;  ///< or silent
  std::string death_text_;
  bool wants_stop_ = false;
};

}  // namespace caftan::actors
