#include "launch/run_end.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "caftan/base/settings_io.hpp"

namespace caftan::actors {
namespace {

constexpr std::size_t kMostLosses = 8;  // that are shown

const app::PlannedWorker& planned(const EndedRun& run, std::size_t worker) { return run.launch.plan.workers[worker]; }

bool is_here(const EndedRun& run, std::size_t worker) {
  return std::ranges::find(run.launch.workers, planned(run, worker).id) != run.launch.workers.end();
}

std::filesystem::path log_of(const EndedRun& run, std::size_t worker) {
  return run.record.directory().log_file(planned(run, worker).name);
}

/// Returns the error of the verdict with what only the launcher knows: the number of the process, and the last line of
/// its log if the worker reported no error itself.
std::string with_pid(const EndedRun& run) {
  std::string text = run.verdict.error;
  if (!run.verdict.blame) return text;
  const std::size_t worker = *run.verdict.blame;
  const std::string& name = planned(run, worker).name;
  if (run.pids[worker] > 0 && text.starts_with(name + " ")) {
    text.insert(name.size(), " (pid " + std::to_string(run.pids[worker]) + ")");
  }
  if (run.errors[worker].code() == Errc::ok && is_here(run, worker)) {
    const std::string tail = last_line(log_of(run, worker));
    if (!tail.empty()) text += ". Its log ends: " + tail;
  }
  return text;
}

/// Returns where to read more; names only files that exist.
std::string where_to_start(const EndedRun& run) {
  if (!run.verdict.blame) return {};
  const app::PlannedWorker& blamed = planned(run, *run.verdict.blame);
  if (!is_here(run, *run.verdict.blame)) {
    return "; the log of " + blamed.name + " is with its own launcher, on host " + blamed.host;
  }
  std::error_code unreadable;
  const auto size = std::filesystem::file_size(log_of(run, *run.verdict.blame), unreadable);
  return unreadable || size == 0 ? std::string() : ", start with log/" + blamed.name + ".log";
}

/// Returns the failure that replaces the verdict of a success whose results could not all be written; nothing if none
/// were lost. A reader that has closed its end loses nothing.
std::optional<run::Verdict> lost_results(const EndedRun& run) {
  const std::string lost = run.view.lost_results();
  if (lost.empty() || run.verdict.outcome != run::Verdict::Outcome::success) return std::nullopt;
  return run::Verdict{.outcome = run::Verdict::Outcome::failure,
                      .exit_code = 1,
                      .error = "standard output: " + lost + "; results are lost",
                      .code = Errc::io_error};
}

/// Returns the failure that replaces the verdict of a success with another fingerprint than the file asks for.
std::optional<run::Verdict> wrong_fingerprint(const EndedRun& run) {
  const std::optional<std::string>& wanted = run.launch.application.run.fingerprint;
  const std::optional<std::string>& found = run.record.fingerprint();
  if (!wanted || wanted == found || run.verdict.outcome != run::Verdict::Outcome::success) return std::nullopt;
  return run::Verdict{.outcome = run::Verdict::Outcome::failure,
                      .exit_code = 1,
                      .error = found ? "the fingerprint is " + *found + ", not run.fingerprint = " + quote_toml(*wanted)
                                     : "the run has no fingerprint, but run.fingerprint asks for one",
                      .code = Errc::goal_missed};
}

/// Returns why a worker ended early, for the summary; empty if it did not, or only because another worker did (RN-13).
std::string error_of(const EndedRun& run, std::size_t worker) {
  const Error& error = run.errors[worker];
  const bool is_blamed = run.verdict.blame == worker;
  if (is_blamed && !run.verdict.death.empty()) return run.verdict.death;
  const auto lost = std::ranges::find(run.losses, worker, &run::Loss::worker);
  if (!is_blamed && lost != run.losses.end()) return lost->why;
  if (error.code() == Errc::ok || (!is_blamed && run::FailureReasons::is_echo(error))) return {};
  return error.message();
}

void write_summary(EndedRun& run) {
  std::vector<RunRecord::WorkerEnd> ends;
  for (const WorkerId id : run.launch.workers) {
    const app::PlannedWorker& worker = planned(run, id.value);
    const pid_t pid = run.pids[id.value];
    ends.push_back({worker.name, worker.host, pid == 0 ? ::getpid() : pid, error_of(run, id.value)});
  }
  std::vector<app::RunSummary::Lost> lost;
  for (const run::Loss& loss : run.losses) {
    const double after = std::chrono::duration<double>(loss.after).count();
    lost.push_back({.name = planned(run, loss.worker).name, .after_s = after, .error = loss.why});
  }
  const auto written =
      run.record.finish(run.launch.application, run.verdict, run.elapsed, std::move(ends), std::move(lost));
  if (!written) run.view.error("error: " + written.error().message());
}

/// RN-17
void show_losses(EndedRun& run) {
  for (std::size_t i = 0; i < std::min(run.losses.size(), kMostLosses); ++i) {
    const run::Loss& loss = run.losses[i];
    run.view.error("lost: " + run::to_text(planned(run, loss.worker).name, loss));
  }
  if (run.losses.size() <= kMostLosses) return;
  run.view.error("lost: " + std::to_string(run.losses.size() - kMostLosses) + " more; all are in summary.json");
}

/// Draws the curves of the run, if it has some, and names the picture. A failure costs no result: curve.csv has all
/// rows. Returns whether there is a picture.
bool show_curve(EndedRun& run) {
  if (run.record.curve_rows() == 0) return false;
  const bool is_long = run.record.curve_rows() > RunRecord::kMostDrawn;
  // After Ctrl-C the rows of a long curve.csv stay in the order in which they came: the user waits for the end.
  if (!is_long || run.verdict.outcome != run::Verdict::Outcome::interrupted) {
    const auto drawn = run.record.draw_curve();
    if (!drawn) {
      run.view.error("warning: the curve is not drawn: " + drawn.error().message());
      return false;
    }
    if (*drawn) {
      run.view.note("curve: " + (*drawn)->string());
      return true;
    }
  }
  run.view.note("curve: too long to be drawn at the end of a run; draw it with: plot " +
                run.record.directory().path().string());
  return false;
}

/// Returns the names of what roles have written into the run's folder, each with a space behind it.
std::string files_of_roles(const std::filesystem::path& folder) {
  static const std::set<std::string> kOwn{"resolved.toml", "metrics.csv", "metrics.jsonl", "curve.csv", "curve.svg",
                                          "summary.json",  "log"};
  std::set<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (!kOwn.contains(name)) names.insert(entry.is_directory(unreadable) ? name + "/" : name);
  }
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

}  // namespace

int report_end(EndedRun run) {
  const std::string path = run.record.directory().path().string();
  const std::string& name = run.launch.application.run.name;
  const std::string seconds = format_fixed(std::chrono::duration<double>(run.elapsed).count(), 1) + " s";
  const bool has_checkpoints = std::filesystem::is_directory(path + "/checkpoints");
  const std::string written = "everything written so far is in " + path +
                              (has_checkpoints ? ", checkpoints to resume from in " + path + "/checkpoints" : "");

  run.verdict.error = with_pid(run);
  if (auto failure = lost_results(run)) run.verdict = *std::move(failure);
  if (auto failure = wrong_fingerprint(run)) run.verdict = *std::move(failure);
  write_summary(run);
  const bool has_picture = show_curve(run);
  show_losses(run);
  if (!run.stragglers.empty()) run.view.note("warning: " + run.stragglers);
  if (run.verdict.outcome == run::Verdict::Outcome::success) {
    const std::string curve = run.record.curve_rows() > 0 ? "curve.csv " : "";
    const std::string picture = has_picture ? "curve.svg " : "";
    run.view.result(path + ": resolved.toml metrics.csv metrics.jsonl " + curve + picture + files_of_roles(path) +
                    "summary.json log/");
    if (!run.view.wait_for_reader(run.signals, base::kNever)) {
      run.verdict = {.outcome = run::Verdict::Outcome::interrupted, .exit_code = 130};
      write_summary(run);
    } else if (auto failure = lost_results(run)) {
      run.verdict = *std::move(failure);
      write_summary(run);
    }
  }
  switch (run.verdict.outcome) {
    case run::Verdict::Outcome::success:
      break;
    case run::Verdict::Outcome::interrupted:
      run.view.error(name + ": interrupted after " + seconds + ", exit 130; " + written);
      break;
    case run::Verdict::Outcome::failure:
      run.view.error("error: " + run.verdict.error);
      run.view.error(name + ": failed after " + seconds + ", exit " + std::to_string(run.verdict.exit_code) + "; " +
                     written + where_to_start(run));
      break;
  }
  if (run.verdict.outcome != run::Verdict::Outcome::success) {
    (void)run.view.wait_for_reader(run.signals, base::SteadyClock().now() + run.launch.application.run.stop_timeout);
  }
  return run.verdict.exit_code;
}

}  // namespace caftan::actors
