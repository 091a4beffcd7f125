#include "caftan/run/internal/supervisor.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "caftan/run/internal/run_messages.hpp"
#include "caftan/wire/internal/shortened.hpp"

namespace caftan::run {
namespace {

/// How long workers that have started may take, after their own start time-out, to report which members they miss.
constexpr base::Duration kLateReportGrace = std::chrono::seconds(1);
/// How long the launcher waits to notice the death of a process after other workers have reported its worker lost.
constexpr base::Duration kUntilDeath = std::chrono::seconds(1);

constexpr std::size_t kMostNames = 8;  // of stragglers

std::string describe(const Death& death) {
  if (!death.why.empty()) return death.why;
  return death.by_signal ? "was killed by " + name_of_signal(death.number)
                         : "exited with code " + std::to_string(death.number);
}

std::vector<std::string> names_of(const std::vector<SupervisedWorker>& workers) {
  std::vector<std::string> names;
  for (const SupervisedWorker& worker : workers) names.push_back(worker.name);
  return names;
}

std::vector<Losses::Worker> that_may_be_lost(const std::vector<SupervisedWorker>& workers) {
  std::vector<Losses::Worker> all;
  for (const SupervisedWorker& worker : workers) {
    all.push_back({.drives = worker.drives, .may_be_lost = worker.may_be_lost});
  }
  return all;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, base::TimePoint now)
    : options_(std::move(options)),
      started_(now),
      phase_deadline_(now + options_.start_timeout),
      reasons_(names_of(options_.workers)),
      losses_(that_may_be_lost(options_.workers)) {
  int processes = 0;
  for (const SupervisedWorker& worker : options_.workers) {
    workers_.push_back({.is = worker});
    processes = std::max(processes, worker.process + 1);
  }
  pulses_.resize(static_cast<std::size_t>(processes));
  for (const SupervisedWorker& worker : options_.workers) {
    pulses_[static_cast<std::size_t>(worker.process)].beats_until_lost =
        worker.is_far ? kFarBeatsUntilLost : kBeatsUntilLost;
  }
}

void Supervisor::alive(int process, base::TimePoint now) {
  if (options_.heartbeat == base::Duration::zero()) return;
  Pulse& pulse = pulses_[static_cast<std::size_t>(process)];
  const LivenessOptions limits{options_.heartbeat, pulse.beats_until_lost * options_.heartbeat};
  if (!pulse.liveness) pulse.liveness.emplace(limits, std::string(), now);
  pulse.liveness->on_bytes_in(now, 1);
}

void Supervisor::answered(int process) { ++pulses_[static_cast<std::size_t>(process)].answers; }

void Supervisor::returned(std::size_t worker, const Error& error) {
  workers_[worker].reach(State::returned);
  if (error.code() != Errc::ok) failed(worker, error);
}

void Supervisor::failed(std::size_t worker, const Error& error) {
  // An error that a role reports after it was asked to stop is no cause of the failure.
  if (ending_ != Ending::none && error.code() == Errc::cancelled) return;
  note_failure(worker, error);
}

void Supervisor::note_failure(std::size_t worker, const Error& error) {
  // The reason why another host left may arrive after its consequence in a role here has begun the end.
  const bool is_late = phase_ == Phase::leaving && !reasons_.has_echo();
  if (is_late || phase_ == Phase::over) return;
  if (interrupts_ > 0 && !reasons_.has_error()) return;
  const Worker& of = workers_[worker];
  reasons_.add(worker, error, !of.is.here || of.state < State::ready);
  want_stop(Ending::failed);
}

/// RN-15: whether the run goes on without a worker that is lost now.
bool Supervisor::goes_on_without(std::size_t worker, State reached, std::string why, base::TimePoint now) {
  const auto how_far = reached >= State::returned ? Losses::Reached::returned
                       : reached >= State::made   ? Losses::Reached::constructed
                                                  : Losses::Reached::start;
  Loss loss{.worker = worker, .after = now - started_, .why = std::move(why)};
  if (!losses_.goes_on_without(std::move(loss), how_far)) return false;
  workers_[worker].reach(State::gone);
  return true;
}

void Supervisor::peer_lost(std::size_t reporter, const std::string& name, const Error& reason, base::TimePoint now) {
  const auto found = std::ranges::find(workers_, name, [](const Worker& w) { return w.is.name; });
  if (found == workers_.end()) return;
  const auto worker = static_cast<std::size_t>(found - workers_.begin());
  const bool in_good_order = reason.code() == Errc::shut_down;
  if (!found->is.here) {
    if (!in_good_order) lost_elsewhere(worker, reason, now);
    found->reach(State::gone);
  } else if (!in_good_order && found->state != State::gone) {
    broken_sessions_.add({.worker = worker, .reporter = reporter, .reason = reason, .due = now + kUntilDeath});
  }
}

/// RN-21
void Supervisor::peer_returned(const std::string& name) {
  const auto found = std::ranges::find(workers_, name, [](const Worker& w) { return w.is.name; });
  if (found == workers_.end() || found->is.here) return;  // this launcher's own workers report their return themselves
  found->reach(State::returned);
}

void Supervisor::lost_elsewhere(std::size_t worker, const Error& reason, base::TimePoint now) {
  const Worker& lost = workers_[worker];
  // A host that ends on its own reports its reason (RN-20).
  const bool is_broken = reason.code() == Errc::peer_down && reason.worker() == lost.is.name;
  if (is_broken && lost.is.may_be_lost && lost.state == State::gone) return;  // another worker has reported it
  const std::string why = "ended without a good-bye (" + wire::shortened(reason, wire::kBriefText).text() + ")";
  if (is_broken && goes_on_without(worker, std::max(State::made, lost.state), why, now)) return;
  const auto blamed = std::ranges::find(workers_, reason.worker(), [](const Worker& w) { return w.is.name; });
  note_failure(blamed == workers_.end() ? worker : static_cast<std::size_t>(blamed - workers_.begin()), reason);
}

/// RN-16: a process that lives but does not reply would keep the run for ever.
void Supervisor::give_up_one_of(const BrokenSessions::Report& broken, base::TimePoint now) {
  std::size_t lost = broken.worker;
  std::size_t other = broken.reporter;
  if (workers_[lost].state == State::gone || workers_[other].state == State::gone) return;
  if (!workers_[lost].is.may_be_lost && workers_[other].is.may_be_lost) std::swap(lost, other);
  const std::string why = "has no session with " + workers_[other].is.name + " any more though both live (" +
                          wire::shortened(broken.reason, wire::kBriefText).text() + ")";
  if (!goes_on_without(lost, workers_[lost].state, why, now)) failed(broken.worker, broken.reason);
}

/// Whether silence is still judged: in a run that has failed already, it may be the cause.
bool Supervisor::listens() const {
  return !reasons_.dead() && kill_ == Kill::none && phase_ != Phase::over &&
         (phase_ != Phase::leaving || reasons_.has_failed_worker());
}

/// Ends the run if a process is silent (RN-2). Liveness itself takes care of times in which it is not asked (RN-3).
void Supervisor::check_silent(base::TimePoint now) {
  for (std::size_t i = 0; i < workers_.size() && listens(); ++i) {
    if (!workers_[i].is.here || workers_[i].state == State::gone) continue;
    Pulse& pulse = pulses_[static_cast<std::size_t>(workers_[i].is.process)];
    if (!pulse.liveness || pulse.liveness->poll(now, false) != Liveness::Action::dead) continue;
    const std::string why = "has shown no sign of life for " +
                            format_duration((pulse.beats_until_lost * options_.heartbeat).count()) + " (" +
                            std::to_string(pulse.beats_until_lost) +
                            " of cluster.heartbeat): it is stopped, or its machine is overloaded";
    if (goes_on_without(i, workers_[i].state, why, now)) continue;
    reasons_.add_death(i, why, false);
    want_stop(Ending::failed);
  }
}

void Supervisor::died(int process, Death death, const std::string& where, base::TimePoint now) {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (worker.is.process != process || !worker.is.here || worker.state == State::gone) continue;
    const State reached = worker.state;
    const Late late = lateness(worker);
    worker.reach(State::gone);
    const bool in_good_order = !death.by_signal && death.number == 0;
    if (in_good_order && reached == State::left) continue;
    if (kill_ != Kill::none) {
      worker.late = late;
      continue;
    }
    // A process that is asked to stop before its worker is ready exits at once.
    if (in_good_order && phase_ == Phase::stopping && reached < State::ready) continue;
    const std::string why = describe(death) + (where.empty() ? "" : " in " + where);
    if (goes_on_without(i, reached, why, now)) continue;
    want_stop(Ending::failed);
    // Behind the reason, and before the way out, which follows a semicolon.
    std::string text = why;
    text.insert(std::min(why.find("; "), why.size()),
                (where.empty() ? " after " : ", ") + format_fixed(seconds(now), 1) + " s");
    reasons_.add_death(i, text, ended_on_its_own(process));
  }
}

void Supervisor::not_started(int process) {
  for (Worker& worker : workers_) {
    if (worker.is.process == process && worker.is.here) worker.reach(State::gone);
  }
}

void Supervisor::interrupt() {
  ++interrupts_;
  want_stop(Ending::interrupted);
}

void Supervisor::broken(const Error& error) {
  reasons_.add_general(error);
  want_stop(Ending::failed);
}

bool Supervisor::all_have_reached(State state) const {
  return std::ranges::all_of(workers_, [state](const Worker& w) { return !w.is.here || w.state >= state; });
}

std::string Supervisor::names_before(State state) const {
  std::string names;
  for (const Worker& worker : workers_) {
    if (worker.is.here && worker.state < state) names += (names.empty() ? "" : ", ") + worker.is.name;
  }
  return names;
}

/// Returns a hint for users whose processes only take long. No process that is waited for can have ended, because the
/// end of one would have stopped the start.
std::string Supervisor::hint_for_slow_processes(State awaited) const {
  if (options_.heartbeat == base::Duration::zero()) return {};
  std::set<int> processes;
  for (const Worker& worker : workers_) {
    if (!worker.is.here || worker.state >= awaited) continue;
    if (worker.is.is_far && worker.state == State::expected)
      return "; its host has not shown that it runs there: try ssh by hand";
    processes.insert(worker.is.process);
  }
  const std::string living = processes.size() == 1
                                 ? "its process lives"
                                 : "the processes of all " + std::to_string(processes.size()) + " live";
  return "; " + living + ": if the machine is busy, raise run.start_timeout";
}

/// RN-8
void Supervisor::unwatched(base::Duration time) {
  for (base::TimePoint* const at : {&made_by_, &kill_at_}) {
    if (*at != base::kNever) *at += time;
  }
  if (all_came_at_) *all_came_at_ += time;
  broken_sessions_.put_off(time);
  if (phase_ != Phase::running && phase_deadline_ != base::kNever) phase_deadline_ += time;
}

void Supervisor::check_start(base::TimePoint now) {
  if (all_have_reached(State::ready)) {
    phase_ = Phase::running;
    phase_deadline_ = options_.wall ? started_ + *options_.wall : base::kNever;
    made_by_ = now + options_.start_timeout;
    return;
  }
  const bool all_came = all_have_reached(State::here);
  if (all_came && !all_came_at_) all_came_at_ = now;
  if (now < phase_deadline_) return;
  // Counted from the moment at which all workers listened: a busy machine takes its time to load a program.
  if (all_came && now < *all_came_at_ + options_.start_timeout + kLateReportGrace) {
    phase_deadline_ = *all_came_at_ + options_.start_timeout + kLateReportGrace;
    return;
  }
  const State awaited = all_came ? State::ready : State::here;
  const auto is_missing = [awaited](const Worker& w) { return w.is.here && w.state < awaited; };
  const auto first = static_cast<std::size_t>(std::ranges::find_if(workers_, is_missing) - workers_.begin());
  const std::string missing = names_before(awaited);
  const bool many = missing.find(',') != std::string::npos;
  const auto launched = std::ranges::count_if(workers_, [](const Worker& w) { return w.is.here; });
  const auto present = launched - std::ranges::count_if(workers_, is_missing);
  const bool all_here = static_cast<std::size_t>(launched) == workers_.size();
  const std::string limit = format_duration(options_.start_timeout.count()) + " (run.start_timeout)";
  reasons_.add(
      first,
      Error(Errc::timeout, "start: " + missing + (many ? " have" : " has") +
                               (all_came ? " not met the others" : " not come") + " within " + limit + "; " +
                               std::to_string(present) + " of " + std::to_string(launched) +
                               (all_here ? "" : " of this host") + " are here" + hint_for_slow_processes(awaited)),
      true);
  want_stop(Ending::failed);
}

/// A constructor that never returns would keep the run for ever.
void Supervisor::check_made(base::TimePoint now) {
  if (all_have_reached(State::made)) made_by_ = base::kNever;
  if (now < made_by_) return;
  made_by_ = base::kNever;
  std::string late;
  std::size_t first = workers_.size();
  // In one process, constructors that hang may hold the threads that other constructors need to begin.
  const auto is_making = [](const Worker& w) { return w.is.here && w.state == State::making; };
  const bool begun = std::ranges::any_of(workers_, is_making);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    if (!worker.is.here || worker.state >= State::made || (begun && !is_making(worker))) continue;
    late += (late.empty() ? "" : ", ") + worker.is.name + " (role '" + worker.is.role + "')";
    first = std::min(first, i);
  }
  const bool many = late.find(", ") != std::string::npos;
  failed(first, Error(Errc::timeout, "start: the constructor" + std::string(many ? "s of " : " of ") + late +
                                         (many ? " have" : " has") + " not returned within " +
                                         format_duration(options_.start_timeout.count()) + " (run.start_timeout)"));
}

bool Supervisor::all_returned() const {
  return std::ranges::all_of(workers_, [](const Worker& w) { return !w.is.drives || w.state >= State::returned; });
}

bool Supervisor::all_gone() const {
  return std::ranges::all_of(workers_, [](const Worker& w) { return w.state == State::gone || !w.is.here; });
}

void Supervisor::begin_stop(base::TimePoint now) {
  phase_ = Phase::stopping;
  phase_deadline_ = now + options_.stop_timeout / 2;
  kill_at_ = now + options_.stop_timeout;
}

std::vector<Supervisor::Action> Supervisor::next(base::TimePoint now) {
  std::vector<Action> actions;
  for (const auto& broken : broken_sessions_.take_due(now)) give_up_one_of(broken, now);
  check_silent(now);
  if (phase_ == Phase::starting && ending_ == Ending::none) check_start(now);
  if (phase_ == Phase::running && ending_ == Ending::none) check_made(now);
  if (phase_ == Phase::running && ending_ == Ending::none && now >= phase_deadline_) {
    broken(Error(Errc::timeout, "the run took longer than " + format_duration(options_.wall->count()) + " (run.wall)"));
  }
  if (ending_ != Ending::none && (phase_ == Phase::starting || phase_ == Phase::running)) {
    begin_stop(now);
    actions.push_back(Action::stop);
  }
  const bool stopped = phase_ == Phase::stopping && (all_returned() || now >= phase_deadline_);
  if (stopped || (phase_ == Phase::running && all_returned())) {
    if (kill_at_ == base::kNever) kill_at_ = now + options_.stop_timeout;
    phase_ = Phase::leaving;
    actions.push_back(Action::leave);
  }
  if (kill_ == Kill::none && !all_gone() && (interrupts_ >= 2 || now >= kill_at_)) {
    kill_ = now < kill_at_ ? Kill::second_interrupt : Kill::stop_timeout;
    actions.push_back(Action::kill);
  }
  asked_ += static_cast<int>(std::ranges::count_if(actions, [](Action action) { return action != Action::kill; }));
  if ((phase_ == Phase::stopping || phase_ == Phase::leaving) && all_gone()) phase_ = Phase::over;
  return actions;
}

base::TimePoint Supervisor::deadline() const noexcept {
  if (kill_ != Kill::none || phase_ == Phase::over) return base::kNever;
  base::TimePoint first = base::kNever;
  if (listens()) {
    for (const Worker& worker : workers_) {
      if (!worker.is.here || worker.state == State::gone) continue;
      const auto& liveness = pulses_[static_cast<std::size_t>(worker.is.process)].liveness;
      if (liveness) first = std::min(first, liveness->next_poll());
    }
  }
  if (phase_ == Phase::leaving) return std::min(first, kill_at_);
  if (phase_ == Phase::stopping) return std::min({first, phase_deadline_, kill_at_});
  return std::min({first, phase_deadline_, made_by_, broken_sessions_.first_due()});
}

double Supervisor::seconds(base::TimePoint now) const { return std::chrono::duration<double>(now - started_).count(); }

// ---- the verdict: why the run failed, which worker it names, which were late

/// RN-23: whether a process that has ended had not read that the run shall end. Without signs of life no process says
/// what it has read.
bool Supervisor::ended_on_its_own(int process) const {
  const bool is_asked = options_.heartbeat != base::Duration::zero();
  return asked_ == 0 || (is_asked && pulses_[static_cast<std::size_t>(process)].answers == 0);
}

Supervisor::Late Supervisor::lateness(const Worker& worker) const {
  // A worker that has not reported at all is not asked to leave.
  if (worker.state == State::left || worker.state == State::expected) return Late::no;
  const bool is_asked = options_.heartbeat != base::Duration::zero();
  if (is_asked && pulses_[static_cast<std::size_t>(worker.is.process)].answers < asked_) return Late::unanswered;
  return worker.is.drives && worker.state < State::returned ? Late::running : Late::leaving;
}

std::string Supervisor::stragglers() const {
  const auto are = [this](Late late) {
    return std::ranges::any_of(workers_, [late](const Worker& w) { return w.late == late; });
  };
  const Late named = are(Late::unanswered) ? Late::unanswered : are(Late::running) ? Late::running : Late::leaving;
  std::string names;
  std::size_t count = 0;
  bool is_far = false;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].late != named || i == reasons_.dead()) continue;
    is_far = is_far || workers_[i].is.is_far;
    if (++count <= kMostNames) names += (names.empty() ? "" : ", ") + workers_[i].is.name;
  }
  if (count == 0) return {};
  if (count > kMostNames) names += " and " + std::to_string(count - kMostNames) + " more";
  const std::string what = named == Late::unanswered ? " had not answered"
                           : named == Late::running  ? " had not returned from run()"
                                                     : " had not left";
  return names + what +
         (kill_ == Kill::second_interrupt
              ? " when the second Ctrl-C came"
              : " within " + format_duration(options_.stop_timeout.count()) + " (run.stop_timeout)") +
         (count == 1 ? " and was killed" : " and were killed") +
         (is_far ? "; a host that cannot be reached ends its processes by itself" : "");
}

Error Supervisor::reason() const {
  if (ending_ == Ending::interrupted) return {Errc::cancelled, "the run was interrupted"};
  return reasons_.reason();
}

Verdict Supervisor::verdict() const {
  if (ending_ == Ending::interrupted) return {.outcome = Verdict::Outcome::interrupted, .exit_code = 130};
  return reasons_.verdict();
}

}  // namespace caftan::run
