#include "launch/launcher.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <variant>

#include "caftan/app/internal/resolved.hpp"
#include "caftan/base/internal/overloaded.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/launchers/internal/ssh.hpp"
#include "caftan/run/internal/death.hpp"
#include "caftan/run/internal/losses.hpp"
#include "launch/exit_watch.hpp"
#include "launch/fatal_signals.hpp"
#include "launch/progress_line.hpp"
#include "launch/remote_host.hpp"
#include "launch/run_addresses.hpp"
#include "launch/run_end.hpp"
#include "launch/run_process.hpp"
#include "launch/run_record.hpp"
#include "launch/shown_progress.hpp"
#include "launch/signal_source.hpp"
#include "role/spin_of_run.hpp"
#include "worker/runners.hpp"

namespace caftan::actors {
namespace {

/// The longest that a round of the launcher's loop waits. Of a round that took longer than kLongRound, all but kRound
/// counts as time in which the launcher was stopped.
constexpr base::Duration kRound = std::chrono::seconds(1);
constexpr base::Duration kLongRound = 2 * kRound;

/// A worker may report faster than the launcher reads: signals, deaths and time-outs must still be served.
constexpr int kEventsInATurn = 64;

/// Each process takes two descriptors here.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Whether the worker runs on another host, behind ssh.
bool is_remote(const LaunchOptions& options, const app::PlannedWorker& worker) {
  return options.by_ssh && worker.host != options.application.hosts.front().name;
}

class Launch {
 public:
  Launch(const LaunchOptions& options, SignalSource& signals, ExitWatch* exits, RunRecord record,
         RunAddresses addresses)
      : options_(options),
        signals_(signals),
        exits_(exits),
        record_(std::move(record)),
        addresses_(std::move(addresses)),
        view_(options.application.output.progress),
        progress_(options.plan, view_),
        supervisor_(supervisor_options(options), clock_.now()),
        started_(clock_.now()),
        looked_(started_),
        next_row_(started_ + options.application.output.every),
        errors_(options.plan.workers.size()) {}

  LaunchOutcome run();

 private:
  static run::SupervisorOptions supervisor_options(const LaunchOptions& options);
  const app::PlannedWorker& planned(std::size_t worker) const { return options_.plan.workers[worker]; }
  base::Duration elapsed() const { return clock_.now() - started_; }

  void show_heading();
  Result<void> start();
  Result<void> start_children();
  Result<void> start_hosts();
  void start_failed(const Error& error);
  void assign(int process);
  void wait();
  void note_pause();
  void leave_start();
  void take_news();
  void take_exit();
  bool takes_events() const;
  void take(const run::Event& event);
  void take_here(std::size_t worker, const run::Here& here);
  void take_ready(std::size_t worker);
  void take_progress(std::size_t worker, const run::Progress& progress);
  void take_report(const run::Report& report);
  void perform(const std::vector<run::Supervisor::Action>& actions);
  void take_losses();
  void command_all(const run::Command& command);
  void draw(bool at_once);
  void write_rows();
  LaunchOutcome finish();

  const LaunchOptions& options_;
  SignalSource& signals_;
  ExitWatch* const exits_;  // null with worker processes
  RunRecord record_;
  RunAddresses addresses_;
  RunView view_;
  ShownProgress progress_;
  base::SteadyClock clock_;
  run::Supervisor supervisor_;
  const base::TimePoint started_;
  base::TimePoint looked_;
  std::optional<base::TimePoint> met_;  // when the start was over
  std::vector<std::string> early_;      // results that came before
  base::TimePoint next_row_;
  // By number of the process in the plan; null for processes of other hosts.
  std::vector<std::unique_ptr<RunProcess>> processes_;
  std::vector<std::shared_ptr<RemoteHost>> hosts_;  // those that are started by ssh
  std::vector<Error> errors_;                       // by worker: the error that the worker itself has reported
  bool must_exit_ = false;
};

run::SupervisorOptions Launch::supervisor_options(const LaunchOptions& options) {
  const app::RunSettings& run = options.application.run;
  const bool watched = run.placement != app::Placement::one_process;
  run::SupervisorOptions supervised{
      .start_timeout = run.start_timeout,
      .stop_timeout = run.stop_timeout,
      .heartbeat = watched ? options.application.cluster.heartbeat : base::Duration::zero(),
      .wall = run.wall};
  for (const app::PlannedWorker& worker : options.plan.workers) {
    supervised.workers.push_back({.name = worker.name,
                                  .role = worker.role,
                                  .process = worker.process,
                                  .drives = worker.drives,
                                  .here = std::ranges::find(options.workers, worker.id) != options.workers.end(),
                                  .is_far = is_remote(options, worker),
                                  .may_be_lost = worker.may_be_lost});
  }
  return supervised;
}

void Launch::show_heading() {
  const std::string& warnings = options_.warnings;
  if (!warnings.empty()) view_.error(std::string_view(warnings).substr(0, warnings.size() - 1));
  const app::Application& application = options_.application;
  const std::size_t count = options_.workers.size();
  std::string text = application.run.name + ": seed " + std::to_string(application.run.seed) + ", ";
  if (application.run.placement == app::Placement::one_process) {
    text += std::to_string(count) + (count == 1 ? " worker" : " workers") + " in one process, ";
  } else {
    text += std::to_string(count) + (count == 1 ? " process" : " processes");
    if (count < options_.plan.workers.size()) text += " of " + std::to_string(options_.plan.workers.size());
    text += ", ";
  }
  const std::string meeting = app::meeting_place(application);
  if (!meeting.empty()) text += "meeting at " + meeting + ", ";
  text += "channel " + std::string(addresses_.channel());
  const std::string about = about_channel(application, options_.plan);
  if (!about.empty()) text += " (" + about + ")";
  const std::string tls = app::tls_text(app::tls_use(application));
  if (!tls.empty()) text += ", " + tls;
  const std::string spin = spin_of_run(application, options_.plan, planned(options_.workers.front().value).host).text;
  if (!spin.empty() && addresses_.channel() == std::string_view("shm")) text += ", spin " + spin;
  view_.note(text + ", in " + record_.directory().path().string());
}

Result<void> Launch::start() {
  if (options_.application.run.placement != app::Placement::one_process) return start_children();
  auto local = LocalProcess::start({.catalog = options_.catalog,
                                    .application = options_.application,
                                    .plan = options_.plan,
                                    .workers = options_.workers,
                                    .members = addresses_.addresses_for(options_.plan, WorkerId{}, {}),
                                    .run_directory = std::filesystem::absolute(record_.directory().path()),
                                    .executor = make_runners(options_.workers.size()),
                                    .network = std::make_shared<LocalNetwork>()});
  if (!local) return local.error();
  processes_.push_back(*std::move(local));
  return {};
}

Result<void> Launch::start_children() {
  raise_descriptor_limit();
  if (std::ranges::any_of(options_.workers, [&](WorkerId id) { return addresses_.is_coordinator(id); })) {
    const std::string warning = loopback_warning(options_.application);
    if (!warning.empty()) view_.error(warning);
  }
  processes_.resize(static_cast<std::size_t>(options_.plan.processes));
  if (auto started = start_hosts(); !started) return started;
  pid_t group = 0;
  for (const WorkerId id : options_.workers) {
    const app::PlannedWorker& worker = planned(id.value);
    auto& process = processes_[static_cast<std::size_t>(worker.process)];
    if (process) continue;  // also one that a relay starts
    auto child = ChildProcess::start({.worker_main = options_.worker_main,
                                      .executable = options_.executable,
                                      .name = worker.name,
                                      .log = record_.directory().log_file(worker.name),
                                      .group = group});
    if (!child) return child.error();
    if (group == 0) group = (*child)->pid();
    process = *std::move(child);
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    // The address of the coordinator may be known only once it listens.
    if (processes_[i] && (!addresses_.must_learn_coordinator() ||
                          addresses_.is_coordinator(options_.plan.in_process(static_cast<int>(i)).front())))
      assign(static_cast<int>(i));
  }
  return {};
}

/// Starts a relay on each host but the first, which is this one (LN-9).
Result<void> Launch::start_hosts() {
  const std::string folder = std::filesystem::absolute(record_.directory().path()).string();
  for (const app::HostSpec& host : options_.application.hosts) {
    RemoteHostOptions remote{.name = host.name, .address = host.address};
    for (const app::PlannedWorker& worker : options_.plan.workers) {
      if (worker.host != host.name || !is_remote(options_, worker)) continue;
      remote.begin.processes.emplace_back(worker.process, worker.name);
      remote.logs[worker.process] = record_.directory().log_file(worker.name);
    }
    if (remote.logs.empty()) continue;
    remote.words = launchers::ssh_words(host.address, options_.executable, std::filesystem::current_path().string(),
                                        options_.application.run.start_timeout);
    remote.begin.run_directory = folder;
    remote.beat = options_.application.cluster.heartbeat;
    remote.begin.silence_s = 1 + std::chrono::ceil<std::chrono::seconds>(run::kFarBeatsUntilLost * remote.beat).count();
    remote.begin.resolved = app::resolved_text(options_.application, options_.types);
    const auto started = RemoteHost::start(remote);
    if (!started) return Error(started.error().code(), "host '" + host.name + "': " + started.error().text());
    hosts_.push_back(*started);
    for (const auto& [process, name] : remote.begin.processes) {
      processes_[static_cast<std::size_t>(process)] = std::make_unique<RemoteProcess>(*started, process);
    }
  }
  return {};
}

void Launch::start_failed(const Error& error) {
  supervisor_.broken(error);
  for (const WorkerId id : options_.workers) {
    const int process = planned(id.value).process;
    const auto index = static_cast<std::size_t>(process);
    if (index >= processes_.size() || !processes_[index]) supervisor_.not_started(process);
  }
}

void Launch::assign(int process) {
  const std::vector<WorkerId> workers = options_.plan.in_process(process);
  run::Assign command{.run_directory = std::filesystem::absolute(record_.directory().path()).string(),
                      .secret = addresses_.secret()};
  for (const WorkerId id : workers) command.workers.push_back(id.value);
  for (const WorkerId id : options_.workers) command.launched.push_back(id.value);
  for (const WorkerAddress& member :
       addresses_.addresses_for(options_.plan, workers.front(), options_.application.hosts)) {
    command.members.emplace_back(member.name, member.address);
  }
  processes_[static_cast<std::size_t>(process)]->send(command);
}

void Launch::take(const run::Event& event) {
  if (event.worker >= options_.plan.workers.size()) return;
  const std::size_t worker = event.worker;
  const std::string& name = planned(worker).name;
  std::visit(base::Overloaded{
                 [&](const run::Here& here) { take_here(worker, here); },
                 [&](const run::Ready&) { take_ready(worker); },
                 [&](const run::Making&) { supervisor_.making(worker); },
                 [&](const run::Made&) { supervisor_.made(worker); },
                 [&](const run::Progress& progress) { take_progress(worker, progress); },
                 [&](const run::Metrics& metrics) {
                   for (const run::Metric& metric : metrics.values) record_.metric(name, metric);
                 },
                 [&](const run::Report& report) { take_report(report); },
                 [&](const run::Fingerprint& fingerprint) { record_.fingerprint(fingerprint.text); },
                 [&](const run::Returned& returned) {
                   if (returned.error.code() != Errc::ok) errors_[worker] = returned.error;
                   supervisor_.returned(worker, returned.error);
                 },
                 [&](const run::Failed& failed) {
                   errors_[worker] = failed.error;
                   supervisor_.failed(worker, failed.error);
                 },
                 [&](const run::PeerLost& lost) { supervisor_.peer_lost(worker, lost.peer, lost.error, clock_.now()); },
                 [&](const run::PeerReturned& returned) { supervisor_.peer_returned(returned.peer); },
                 [&](const run::Refused& refused) {
                   view_.error("warning: " + name + " refused a connection: " + refused.error.message());
                 },
                 [&](const run::Duplicate& duplicate) {
                   view_.error("warning: " + name + " was refused: " + duplicate.error.message());
                 },
                 [&](const run::Traffic& traffic) { record_.add_sent(traffic.sent); },
                 [&](const run::Left&) { supervisor_.left(worker); },
                 [](const run::Alive&) {},
                 [&](const run::Answered&) { supervisor_.answered(planned(worker).process); },
             },
             event.body);
}

void Launch::take_here(std::size_t worker, const run::Here& here) {
  supervisor_.here(worker);
  if (!addresses_.learn_coordinator(planned(worker).id, here.address)) return;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i] && static_cast<int>(i) != planned(worker).process) assign(static_cast<int>(i));
  }
}

void Launch::take_ready(std::size_t worker) {
  supervisor_.ready(worker);
  std::size_t widest = 0;
  for (const app::PlannedWorker& of : options_.plan.workers) widest = std::max(widest, of.name.size());
  std::string line = "  " + planned(worker).name;
  line.resize(widest + 4, ' ');
  const pid_t pid = processes_[static_cast<std::size_t>(planned(worker).process)]->pid();
  if (pid != 0) line += "pid " + std::to_string(pid);
  if (is_remote(options_, planned(worker))) line += " on " + planned(worker).host;
  if (pid != 0) line += "  ";
  view_.note(line + "ready after " + format_fixed(std::chrono::duration<double>(elapsed()).count(), 2) + " s");
}

void Launch::take_progress(std::size_t worker, const run::Progress& progress) {
  progress_.take(worker, {progress.done, progress.total, progress.text});
  draw(false);
}

void Launch::take_report(const run::Report& report) {
  progress_.drop_news();
  // Results that come before the start is over are shown after the lines that report each worker ready.
  if (supervisor_.phase() == run::Supervisor::Phase::starting) return early_.push_back(report.text);
  view_.result(report.text);
}

/// RN-9
void Launch::take_exit() {
  const auto status = exits_ ? exits_->take() : std::nullopt;
  if (!status) return;
  supervisor_.broken(Error(Errc::shut_down, "code of a role called exit(" + std::to_string(*status) +
                                                "), which ends all workers of this process (run.placement)"));
  processes_.front()->kill();
}

/// RN-7: results that are not read keep their workers waiting, as long as the run goes on.
bool Launch::takes_events() const {
  const auto phase = supervisor_.phase();
  return !view_.is_full() || (phase != run::Supervisor::Phase::starting && phase != run::Supervisor::Phase::running);
}

void Launch::leave_start() {
  if (supervisor_.phase() == run::Supervisor::Phase::starting || met_) return;
  met_ = clock_.now();
  for (const std::string& line : early_) view_.result(line);
  early_.clear();
}

void Launch::note_pause() {
  const base::TimePoint now = clock_.now();
  if (now - looked_ > kLongRound) supervisor_.unwatched(now - looked_ - kRound);
  looked_ = now;
}

void Launch::take_news() {
  while (signals_.take()) supervisor_.interrupt();
  take_exit();
  for (const auto& host : hosts_) {
    for (const std::string& text : host->take_lines()) view_.error(host->name() + ": " + printable(text));
  }
  view_.flush();
  const bool takes = takes_events();
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (!processes_[i]) continue;
    if (!takes)
      supervisor_.alive(static_cast<int>(i), clock_.now());  // an event that is not read now may be a sign of life
    // Checked before the events are read: once a process has ended, all its events are in the queue.
    const auto death = processes_[i]->take_death();
    for (int taken = 0; death || (takes && taken < kEventsInATurn); ++taken) {
      const auto event = processes_[i]->next_event();
      if (!event) break;
      supervisor_.alive(static_cast<int>(i), clock_.now());
      take(*event);
    }
    if (!death) continue;
    if (processes_[i]->pid() == 0 && death->number != 0) must_exit_ = true;
    supervisor_.died(static_cast<int>(i), *death, progress_.where(), clock_.now());
  }
}

void Launch::command_all(const run::Command& command) {
  for (const auto& process : processes_) {
    if (process) process->send(command);
  }
}

void Launch::perform(const std::vector<run::Supervisor::Action>& actions) {
  for (const run::Supervisor::Action action : actions) {
    switch (action) {
      case run::Supervisor::Action::stop:
        command_all(run::Stop{});
        break;
      case run::Supervisor::Action::leave:
        command_all(run::Leave{supervisor_.reason()});
        break;
      case run::Supervisor::Action::kill:
        for (const auto& process : processes_) {
          if (process) process->kill();
        }
        break;
    }
  }
  // No worker dials any more: remove now the folder of sockets, which would stay behind if this process were killed.
  if (supervisor_.phase() != run::Supervisor::Phase::starting) addresses_.remove_sockets();
}

/// RN-16, RN-17
void Launch::take_losses() {
  for (const run::Loss& loss : supervisor_.take_losses()) {
    const app::PlannedWorker& worker = planned(loss.worker);
    const auto process = static_cast<std::size_t>(worker.process);
    if (process < processes_.size() && processes_[process]) processes_[process]->kill();
    view_.error("warning: " + run::to_text(worker.name, loss) + "; that does not end the run (roles." + worker.role +
                ".on_loss)");
  }
}

void Launch::draw(bool at_once) {
  if (supervisor_.is_over()) return;
  const base::TimePoint now = clock_.now();
  progress_.draw(at_once, now, met_ ? now - *met_ : base::Duration::zero());
}

void Launch::write_rows() {
  if (const auto written = record_.write_rows(elapsed()); !written) supervisor_.broken(written.error());
}

void Launch::wait() {
  std::vector<pollfd> waited{{signals_.fd(), POLLIN, 0}, {exits_ ? exits_->fd() : -1, POLLIN, 0}};
  view_.add_to(waited);
  for (const auto& process : processes_) {
    if (process) process->add_to(waited, takes_events());
  }
  const base::TimePoint until = std::min({supervisor_.deadline(), next_row_, looked_ + kRound});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.now()).count();
  {
    const SignalsOpen open;
    (void)::poll(waited.data(), waited.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
  }
  if (clock_.now() < next_row_) return;
  next_row_ = clock_.now() + options_.application.output.every;
  write_rows();
  draw(true);
}

LaunchOutcome Launch::run() {
  show_heading();
  if (const auto started = start(); !started) start_failed(started.error());
  for (;;) {
    note_pause();
    take_news();
    perform(supervisor_.next(clock_.now()));
    take_losses();
    leave_start();
    if (supervisor_.is_over()) break;
    wait();
  }
  return finish();
}

LaunchOutcome Launch::finish() {
  write_rows();
  EndedRun ended{.launch = options_,
                 .record = record_,
                 .view = view_,
                 .signals = &signals_,
                 .verdict = supervisor_.verdict(),
                 .stragglers = supervisor_.stragglers(),
                 .elapsed = elapsed(),
                 .pids = std::vector<pid_t>(errors_.size()),
                 .errors = std::move(errors_),
                 .losses = supervisor_.losses()};
  for (const WorkerId id : options_.workers) {
    const auto process = static_cast<std::size_t>(planned(id.value).process);
    if (process < processes_.size() && processes_[process]) ended.pids[id.value] = processes_[process]->pid();
  }
  return {report_end(std::move(ended)), must_exit_};
}

/// Returns what is written when a signal kills the one process of a run.
FatalSignals::Words words_for(int number, const LaunchOptions& options, const RunRecord& record) {
  const app::RunSettings& run = options.application.run;
  const std::string end =
      "was killed by " + run::name_of_signal(number) + " in one of its workers, which share a process (run.placement)";
  FatalSignals::Words words{.line = "error: " + run.name + " (pid " + std::to_string(::getpid()) + ") " + end +
                                    "; everything written so far is in " + record.directory().path().string() + "\n"};
  std::vector<RunRecord::WorkerEnd> workers;
  for (const WorkerId id : options.workers) {
    const app::PlannedWorker& worker = options.plan.workers[id.value];
    workers.push_back({worker.name, worker.host, ::getpid(), {}});
  }
  const run::Verdict verdict{.outcome = run::Verdict::Outcome::failure,
                             .exit_code = 128 + number,
                             .error = run.name + " " + end,
                             .code = Errc::peer_down};
  words.summary = record.summary(options.application, verdict, base::Duration::zero(), std::move(workers));
  constexpr std::string_view kDuration = "\"duration_s\": ";
  const std::size_t at = words.summary.find(kDuration) + kDuration.size();
  words.rest = words.summary.substr(words.summary.find(',', at));
  words.summary.resize(at);
  return words;
}

}  // namespace

LaunchOutcome launch(const LaunchOptions& options) {
  SignalSource signals;
  const auto refused = [](const Error& error) {
    const std::string line = "error: " + error.message() + "\n";
    std::fputs(line.c_str(), stderr);
    return LaunchOutcome{1, false};
  };
  auto addresses = RunAddresses::make(options.application, options.plan);
  if (!addresses) return refused(addresses.error());
  auto record = RunRecord::create(options.application, app::resolved_text(options.application, options.types),
                                  options.workers.size());
  if (!record) {
    const Error& error = record.error();
    return refused(
        Error(error.code(), "output.dir " + quote_toml(options.application.output.dir) + ": " + error.text()));
  }
  const bool is_shared = options.application.run.placement == app::Placement::one_process;
  std::optional<FatalSignals> fatal;
  std::optional<ExitWatch> exits;
  if (is_shared) {
    const std::string summary = std::filesystem::absolute(record->directory().summary_file()).string();
    fatal.emplace([&](int number) { return words_for(number, options, *record); }, summary, false, record->reserve());
    exits.emplace();
  }
  return Launch(options, signals, exits ? &*exits : nullptr, *std::move(record), *std::move(addresses)).run();
}

}  // namespace caftan::actors
