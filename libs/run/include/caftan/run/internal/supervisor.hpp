/// `Supervisor`: what a run does next, from the first process to the last. Pure: events and the time go in, what to do
/// comes out; the launcher does it. There are no restarts: a worker that is lost ends the run, and the verdict names
/// it, or the run goes on without it, as `on_loss` of its role says.
///
///     starting --all ready--> running --every run() returned--> leaving --all processes gone--> over
///         \------- failure, loss, Ctrl-C -------> stopping --run()s returned, or half of stop_timeout--/
///
/// Invariants RN-1 to RN-23: docs/protocols/run.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/error.hpp"
#include "caftan/base/internal/liveness.hpp"
#include "caftan/run/internal/death.hpp"
#include "caftan/run/internal/failure_reasons.hpp"
#include "caftan/run/internal/losses.hpp"

namespace caftan::run {

struct SupervisedWorker {
  std::string name{};
  std::string role{};
  int process = 0;
  bool drives = false;
  bool here = true;          ///< this launcher runs the worker; the others are on other hosts
  bool is_far = false;       ///< of one that is here: its process is on another host, and its reports come through ssh
  bool may_be_lost = false;  ///< the run may go on without this worker (RN-15)
};

struct SupervisorOptions {
  std::vector<SupervisedWorker> workers{};
  base::Duration start_timeout{};
  base::Duration stop_timeout{};
  /// Period of the processes' signs of life; 0 = the workers live and die with the launcher.
  base::Duration heartbeat{};
  std::optional<base::Duration> wall{};
};

/// Parameters that name a worker are its index in the options.
class Supervisor {
 public:
  enum class Phase { starting, running, stopping, leaving, over };
  enum class Action { stop, leave, kill };

  Supervisor(SupervisorOptions options, base::TimePoint now);

  // Events. Repeating one has no effect. What each report means: run_messages.hpp.
  void here(std::size_t worker) { workers_[worker].reach(State::here); }
  void ready(std::size_t worker) { workers_[worker].reach(State::ready); }
  void making(std::size_t worker) { workers_[worker].reach(State::making); }
  void made(std::size_t worker) { workers_[worker].reach(State::made); }
  void returned(std::size_t worker, const Error& error);
  void failed(std::size_t worker, const Error& error);
  void left(std::size_t worker) { workers_[worker].reach(State::left); }
  /// `alive`: a process has shown a sign of life. `answered`: a process has read one more `Stop` or `Leave`.
  void alive(int process, base::TimePoint now);
  void answered(int process);
  /// A worker of this launcher has no session with another one any more.
  /// @param reason  shut_down if that one left in good order; its farewell if it left because its run failed
  void peer_lost(std::size_t reporter, const std::string& name, const Error& reason, base::TimePoint now);
  /// The run() of a worker elsewhere has returned without an error (RN-21). Other names change nothing.
  void peer_returned(const std::string& name);
  /// @param where  how far the run was, for the text: "episode 121", or empty
  void died(int process, Death death, const std::string& where, base::TimePoint now);
  /// A process could not be started: the run does not wait for its workers.
  void not_started(int process);
  /// Ctrl-C: the first one stops, the second one kills.
  void interrupt();
  /// The launcher was stopped, or had no processor, for `time`, which counts against no time-out (RN-8).
  void unwatched(base::Duration time);
  /// The launcher itself cannot go on: a full disk, say.
  void broken(const Error& error);

  /// Returns what has to be done now, in the order of the list.
  std::vector<Action> next(base::TimePoint now);
  /// Returns the workers lost since the last call without which the run goes on: kill their processes (RN-16).
  std::vector<Loss> take_losses() { return losses_.take_new(); }
  /// Returns all lost workers without which the run goes on.
  const std::vector<Loss>& losses() const noexcept { return losses_.all(); }
  /// Returns when `next` must be asked again at the latest.
  base::TimePoint deadline() const noexcept;

  Phase phase() const noexcept { return phase_; }
  bool is_over() const noexcept { return phase_ == Phase::over; }
  Verdict verdict() const;
  /// Returns why the run has failed so far, shortened for other hosts; Errc::ok = it has not.
  Error reason() const;
  /// Returns the text about the workers that were killed because they had not left, with the reason; empty = none
  /// (RN-4).
  std::string stragglers() const;

 private:
  /// How far a worker has come. It never goes back, and may skip states.
  enum class State {
    expected,
    here,      ///< it listens
    ready,     ///< the worker has a session with every other member
    making,    ///< the constructor of the worker's role has begun
    made,      ///< the constructor has returned
    returned,  ///< run() has returned
    left,      ///< the worker has said bye to all members
    gone,      ///< the worker's process has ended or could not be started; of a worker elsewhere, its session has ended
  };
  /// What a worker had not done yet when it was killed.
  enum class Late { no, unanswered, running, leaving };
  struct Worker {
    SupervisedWorker is;
    State state = State::expected;
    Late late = Late::no;

    void reach(State next) {
      if (state < next) state = next;
    }
  };
  /// Why the run was asked to end before its roles had returned: the reason that came first.
  enum class Ending { none, interrupted, failed };
  /// Why the processes were killed.
  enum class Kill { none, stop_timeout, second_interrupt };
  struct Pulse {
    std::optional<Liveness> liveness;  ///< set by the first sign of life
    int beats_until_lost = 0;
    int answers = 0;
  };
  /// The run shall end. The first reason counts.
  void want_stop(Ending why) {
    if (ending_ == Ending::none) ending_ = why;
  }
  void begin_stop(base::TimePoint now);
  void note_failure(std::size_t worker, const Error& error);
  bool goes_on_without(std::size_t worker, State reached, std::string why, base::TimePoint now);
  void lost_elsewhere(std::size_t worker, const Error& reason, base::TimePoint now);
  void give_up_one_of(const BrokenSessions::Report& broken, base::TimePoint now);
  /// Returns whether each worker that this launcher has started has reached `state` or a later one.
  bool all_have_reached(State state) const;
  /// Returns the names of the workers that have not reached `state`, separated by commas.
  std::string names_before(State state) const;
  std::string hint_for_slow_processes(State awaited) const;
  void check_start(base::TimePoint now);
  void check_made(base::TimePoint now);
  void check_silent(base::TimePoint now);
  bool listens() const;
  Late lateness(const Worker& worker) const;
  bool ended_on_its_own(int process) const;
  bool all_returned() const;
  bool all_gone() const;
  double seconds(base::TimePoint now) const;

  const SupervisorOptions options_;
  const base::TimePoint started_;
  std::vector<Worker> workers_;
  std::vector<Pulse> pulses_;  // by process
  int asked_ = 0;              // how many times the processes were asked to stop or to leave
  Phase phase_ = Phase::starting;
  base::TimePoint phase_deadline_;
  std::optional<base::TimePoint> all_came_at_;
  base::TimePoint made_by_ = base::kNever;  ///< when all constructors must have returned
  base::TimePoint kill_at_ = base::kNever;
  int interrupts_ = 0;
  Kill kill_ = Kill::none;
  Ending ending_ = Ending::none;
  FailureReasons reasons_;
  BrokenSessions broken_sessions_;  ///< reports that wait whether the process of a worker is found dead
  Losses losses_;                   ///< the workers that were lost and without which the run goes on
};

}  // namespace caftan::run
