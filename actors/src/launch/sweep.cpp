#include "launch/sweep.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "caftan/app/internal/run_directory.hpp"
#include "caftan/app/internal/sweep_table.hpp"
#include "caftan/app/load.hpp"
#include "caftan/base/settings_io.hpp"
#include "launch/command_process.hpp"
#include "launch/progress_line.hpp"
#include "launch/signal_source.hpp"
#include "launch/sweep_folder.hpp"

namespace caftan::actors {
namespace {

constexpr int kBadCommandLine = 2;
constexpr int kInterrupted = 130;

std::string seconds_text(base::Duration duration) {
  return format_fixed(std::chrono::duration<double>(duration).count(), 1) + " s";
}

std::string count_text(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// Returns why a run failed; empty if it did not.
std::string failure_of(const run::Death& death) {
  if (death.by_signal) return "was killed by " + run::name_of_signal(death.number);
  return death.number == 0 ? std::string() : "ended with exit code " + std::to_string(death.number);
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const app::SweepPlan& plan, SweepFolder folder, std::string digest,
        app::Progress progress, SignalSource& signals);

  int run();

 private:
  struct Running {
    std::size_t run = 0;
    base::TimePoint started{};
    std::filesystem::path try_before{};  // the newest one before this
    std::unique_ptr<CommandProcess> process{};
  };

  /// Returns "003 (run.seed=1 x=c)".
  std::string name_of(std::size_t run) const;
  void start_runs();
  Result<void> start(std::size_t run);
  void wait();
  void take_news();
  void take_end(const Running& ended, const run::Death& death);
  void take_failure(std::size_t run, std::string failure, const app::RunSummary& summary);
  void warn_of_metric();
  void draw();
  int finish();
  int show_table();
  int show_failures();

  const SweepOptions& options_;
  const app::SweepPlan& plan_;
  SweepFolder folder_;
  const std::string digest_;
  SignalSource& signals_;
  RunView view_;
  base::SteadyClock clock_;
  const base::TimePoint started_;
  base::TimePoint last_end_;
  std::size_t ended_ = 0;                        // how many runs this process has carried out
  std::vector<std::size_t> waiting_;             // runs, the next one last
  std::vector<Running> running_;                 // in the order in which the runs were started
  std::vector<app::SweepResult> results_;        // also those of earlier starts
  std::map<std::size_t, std::string> failures_;  // by run: the code of the run's error, or how the run ended
  bool metric_is_checked_ = false;
  std::optional<Error> broken_;  // why no further run is started
  bool interrupted_ = false;
  bool is_news_ = true;  // since the last drawing
};

Sweep::Sweep(const SweepOptions& options, const app::SweepPlan& plan, SweepFolder folder, std::string digest,
             app::Progress progress, SignalSource& signals)
    : options_(options),
      plan_(plan),
      folder_(std::move(folder)),
      digest_(std::move(digest)),
      signals_(signals),
      view_(progress),
      started_(clock_.now()),
      last_end_(started_),
      waiting_(folder_.state().left()) {
  std::ranges::reverse(waiting_);
  for (std::size_t run = 0; run < plan_.runs(); ++run) {
    if (!folder_.state().has_succeeded(run)) continue;
    if (auto summary = folder_.summary_of(run)) {
      results_.push_back({.run = run, .metrics = std::move(summary->metrics)});
    }
  }
}

std::string Sweep::name_of(std::size_t run) const {
  const std::string values = plan_.describe(run);
  return app::sweep_run_name(run, plan_.runs()) + (values.empty() ? "" : " (" + values + ")");
}

Result<void> Sweep::start(std::size_t run) {
  if (digest_of_file(options_.file) != digest_) {
    return Error(Errc::invalid_config,
                 printable(options_.file.string()) +
                     " has changed since the sweep began; its other runs would be of another sweep");
  }
  const std::filesystem::path folder = folder_.folder_of(run);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error(Errc::io_error, folder.string() + ": " + error.message());
  CommandOptions command{.executable = options_.executable, .arguments = {"run", options_.file.string()}};
  for (const std::string& value : plan_.overrides_of(run)) command.arguments.push_back(value);
  command.arguments.push_back("output.dir=" + quote_toml(folder.string()));
  command.arguments.emplace_back("output.progress=plain");
  command.log = folder_.log_of(run);
  std::filesystem::path try_before = folder_.newest_of(run);
  auto process = CommandProcess::start(command);
  if (!process) return process.error();
  running_.push_back({run, clock_.now(), std::move(try_before), *std::move(process)});
  return {};
}

void Sweep::start_runs() {
  while (!interrupted_ && !broken_ && !waiting_.empty() && running_.size() < static_cast<std::size_t>(options_.jobs)) {
    const std::size_t run = waiting_.back();
    waiting_.pop_back();
    if (auto started = start(run); !started) broken_ = started.error();
    is_news_ = true;
  }
}

void Sweep::wait() {
  std::vector<pollfd> waited{{signals_.fd(), POLLIN, 0}};
  for (const Running& running : running_) waited.push_back({running.process->fd(), POLLIN, 0});
  view_.add_to(waited);
  constexpr int kDrawEveryMs = 1000;
  const SignalsOpen open;
  (void)::poll(waited.data(), waited.size(), kDrawEveryMs);
}

void Sweep::take_news() {
  while (signals_.take()) {
    interrupted_ = true;
    for (const Running& running : running_) running.process->interrupt();
  }
  view_.flush();
  std::erase_if(running_, [this](const Running& running) {
    const auto death = running.process->death();
    if (death) take_end(running, *death);
    return death.has_value();
  });
  warn_of_metric();
}

void Sweep::take_end(const Running& ended, const run::Death& death) {
  is_news_ = true;
  ++ended_;
  last_end_ = clock_.now();
  std::string failure = failure_of(death);
  // A run that failed before it had a folder leaves the summary of an earlier try.
  const bool has_begun = folder_.newest_of(ended.run) != ended.try_before;
  auto summary = has_begun ? folder_.summary_of(ended.run) : std::nullopt;
  if (failure.empty() && !summary) failure = "left no summary that can be read";
  const bool has_succeeded = failure.empty();
  if (has_succeeded) {
    folder_.state().set_succeeded(ended.run);
    view_.note("  " + name_of(ended.run) + "  succeeded after " + seconds_text(last_end_ - ended.started));
  } else if (!interrupted_) {
    take_failure(ended.run, std::move(failure), summary.value_or(app::RunSummary()));
  }
  const bool has_missed_goal = summary && summary->error_code == to_string(Errc::goal_missed);
  if (summary && (has_succeeded || has_missed_goal)) {
    results_.push_back({.run = ended.run, .metrics = std::move(summary->metrics), .has_missed_goal = has_missed_goal});
  }
  if (auto saved = folder_.save(); !saved && !broken_) broken_ = saved.error();
}

void Sweep::take_failure(std::size_t run, std::string failure, const app::RunSummary& summary) {
  folder_.state().set_failed(run);
  failures_[run] = summary.error_code.empty() ? failure : summary.error_code;
  if (!summary.error.empty()) failure += " (" + printable(summary.error) + ")";
  view_.error("error: run " + name_of(run) + " " + failure + "; its log is " + folder_.log_of(run).string());
}

/// Warns once of a --metric that no run has so far. A later run may have it: what a run reports may follow its
/// settings.
void Sweep::warn_of_metric() {
  const bool is_over = waiting_.empty() && running_.empty();
  if (!options_.metric || metric_is_checked_ || interrupted_ || is_over) return;
  const auto table = app::make_sweep_table(plan_, results_, options_.metric);
  metric_is_checked_ = !table || !table->metrics.empty();
  if (table) return;
  view_.error("warning: --metric: " + table.error().text() +
              ". The sweep goes on; unless a later run has that metric, its table shows all of them");
}

void Sweep::draw() {
  if (!view_.is_live() && !is_news_) return;
  is_news_ = false;
  const base::Duration elapsed = clock_.now() - started_;
  const std::size_t left = waiting_.size() + running_.size();
  const std::size_t done = plan_.runs() - left;
  std::string text;
  if (ended_ > 0) {
    text =
        "about " + minutes_and_seconds(app::sweep_time_left(last_end_ - started_, ended_, left, elapsed)) + " left  ";
  }
  text += std::to_string(done) + " of " + count_text(plan_.runs(), "run") + "  ";
  for (const Running& running : running_) {
    text += (&running == &running_.front() ? "running " : ", ") + name_of(running.run);
  }
  const ProgressState state{static_cast<std::int64_t>(done), static_cast<std::int64_t>(plan_.runs()), text};
  view_.progress("sweep", state, elapsed, false);
}

int Sweep::run() {
  const std::size_t done = plan_.runs() - waiting_.size();
  view_.note("sweep of " + count_text(plan_.runs(), "run") +
             (done == 0 ? "" : ", " + std::to_string(done) + " of which have succeeded before") + ", in " +
             folder_.path().string());
  warn_of_metric();
  for (;;) {
    start_runs();
    if (running_.empty()) break;
    draw();
    wait();
    take_news();
  }
  return finish();
}

int Sweep::finish() {
  std::ranges::sort(results_, {}, &app::SweepResult::run);  // with --jobs the runs end in another order
  int code = 0;
  const bool is_cut_off = interrupted_ || broken_;
  if (broken_) {
    view_.error("error: " + broken_->text());
    code = 1;
  }
  if (is_cut_off) {
    view_.error("sweep: " + std::string(interrupted_ ? "interrupted" : "stopped") + ", " +
                std::to_string(plan_.runs() - folder_.state().left().size()) + " of " +
                count_text(plan_.runs(), "run") + " have succeeded; the same command with --out " +
                folder_.path().string() + " goes on with it");
  } else {
    code = show_table();
    code = std::max(code, show_failures());
  }
  if (!view_.wait_for_reader(&signals_, base::kNever)) interrupted_ = true;
  if (interrupted_) return kInterrupted;
  if (const std::string lost = view_.lost_results(); !lost.empty()) {
    view_.error("error: standard output: " + lost + "; results are lost");
    view_.flush();
    return 1;
  }
  return code;
}

/// Returns the exit code.
int Sweep::show_table() {
  int code = 0;
  auto table = app::make_sweep_table(plan_, results_, options_.metric);
  if (!table) {
    view_.error("error: --metric: " + table.error().text() + ". The table shows all of them");
    table = app::make_sweep_table(plan_, results_, std::nullopt);
    code = kBadCommandLine;
  }
  for (const std::string& line : app::sweep_lines(*table)) view_.result(line);
  if (auto written = app::write_whole_file(folder_.path() / "sweep.csv", app::sweep_csv(*table)); !written) {
    view_.error("error: " + written.error().text());
    return 1;
  }
  view_.result(folder_.path().string() + ": sweep.csv sweep.toml");
  return code;
}

/// Returns the exit code.
int Sweep::show_failures() {
  const std::vector<std::size_t> failed = folder_.state().failed();
  if (failed.empty()) return 0;
  const std::string missed(to_string(Errc::goal_missed));
  const auto count = std::ranges::count_if(failed, [&](std::size_t run) { return failures_[run] == missed; });
  view_.error("error: " + std::to_string(failed.size()) + " of " + count_text(plan_.runs(), "run") + " failed" +
              (count == 0 ? "" : ", " + std::to_string(count) + " of them with " + missed) + ":");
  for (const std::size_t run : failed) {
    view_.error("  " + name_of(run) + "  " + failures_[run] + ", folder " + folder_.folder_of(run).string() + ", log " +
                folder_.log_of(run).string());
  }
  return 1;
}

int refuse(const std::string& text) {
  std::fputs(("error: " + text + "\n").c_str(), stderr);
  return kBadCommandLine;
}

/// Loads each run's settings as `run` would. Returns the errors of the first run that has any, for people; empty if all
/// are right.
/// @param first  gets the application of the first run
std::string check_runs(const SweepOptions& options, const app::SweepPlan& plan, app::Application& first) {
  std::string text;
  std::size_t wrong = 0;
  for (std::size_t run = 0; run < plan.runs(); ++run) {
    const std::vector<std::string> overrides = plan.overrides_of(run);
    app::LoadedApplication loaded =
        app::load_application(options.file, overrides, options.types, {.mode = app::LoadMode::run});
    std::string what = loaded.diagnostics.ok() ? std::string() : loaded.diagnostics.render(false);
    if (what.empty() && loaded.application.run.placement == app::Placement::hosts) {
      what = "error: placement = \"hosts\": a sweep starts all workers here; add run.placement=processes\n";
    }
    if (!what.empty() && wrong++ == 0) {
      const std::string values = plan.describe(run);
      text = (values.empty() ? "" : "error: of the run with " + values + ":\n") + what;
    }
    if (run == 0) first = std::move(loaded.application);
  }
  if (wrong > 1) text += "error: " + std::to_string(wrong) + " of " + count_text(plan.runs(), "run") + " have errors\n";
  return text;
}

/// Returns the sweep's folder, which exists then; an absolute path.
Result<std::filesystem::path> make_folder(const SweepOptions& options, const app::Application& application) {
  std::error_code error;
  if (options.out) {
    std::filesystem::create_directories(*options.out, error);
    if (error) return Error(Errc::io_error, options.out->string() + ": " + error.message());
    return std::filesystem::absolute(*options.out).lexically_normal();
  }
  auto made = app::make_numbered_folder(application.output.dir, application.run.name + "-sweep", app::today());
  if (!made) return made;
  return std::filesystem::absolute(*made);
}

}  // namespace

int run_sweep(const SweepOptions& options) {
  const auto plan = app::SweepPlan::parse(options.assignments);
  if (!plan) return refuse(plan.error().text());
  if (std::ranges::find(plan->axes(), std::string("output.dir"), &app::SweepAxis::key) != plan->axes().end()) {
    return refuse("output.dir: each run has a folder in that of the sweep, which --out DIR names");
  }
  app::Application first;
  if (const std::string wrong = check_runs(options, *plan, first); !wrong.empty()) {
    std::fputs(wrong.c_str(), stderr);
    return kBadCommandLine;
  }
  const auto digest = digest_of_file(options.file);
  if (!digest) return refuse(printable(options.file.string()) + ": cannot be read");
  const auto path = make_folder(options, first);
  if (!path) return refuse(path.error().text());
  auto folder = SweepFolder::open(*path, *digest, *plan);
  if (!folder) return refuse(folder.error().text());
  SignalSource signals;
  return Sweep(options, *plan, *std::move(folder), *digest, first.output.progress, signals).run();
}

}  // namespace caftan::actors
