#include "launch/run_record.hpp"

#include <sys/utsname.h>

#include <fstream>
#include <span>
#include <thread>
#include <utility>

#include "caftan/results/plot.hpp"
#include "launch/fatal_signals.hpp"

namespace caftan::actors {
namespace {

constexpr std::size_t kLongestLine = 300;
constexpr std::streamoff kTail = 4096;
constexpr std::size_t kSummary = 16 * 1024;    ///< bytes, with some hundred metrics
constexpr std::size_t kSummaryOfWorker = 512;  ///< bytes that one worker takes in summary.json, also a lost one

std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> facts{{"caftan", CAFTAN_VERSION},
                                           {"libtorch", CAFTAN_LIBTORCH_VERSION},
                                           {"compiler", __VERSION__},
                                           {"cores", std::to_string(std::thread::hardware_concurrency())}};
  utsname name{};
  if (::uname(&name) == 0) {
    facts["system"] = std::string(name.sysname) + " " + name.release + " " + name.machine;
    facts["host"] = name.nodename;
  }
  return facts;
}

constexpr const char* text_of(app::Placement placement) {
  switch (placement) {
    case app::Placement::one_process:
      return "one_process";
    case app::Placement::processes:
      return "processes";
    case app::Placement::hosts:
      break;
  }
  return "hosts";
}

constexpr const char* text_of(run::Verdict::Outcome outcome) {
  switch (outcome) {
    case run::Verdict::Outcome::success:
      return "success";
    case run::Verdict::Outcome::failure:
      return "failure";
    case run::Verdict::Outcome::interrupted:
      break;
  }
  return "interrupted";
}

}  // namespace

Result<RunRecord> RunRecord::create(const app::Application& application, const std::string& resolved,
                                    std::size_t workers) {
  auto directory = app::RunDirectory::create(application.output.dir, application.run.name, app::today(), resolved);
  if (!directory) return directory.error();
  const auto failed = [&](const Error& error) {
    std::error_code ignored;
    std::filesystem::remove_all(directory->path(), ignored);  // nothing is left of a run that never began
    return error;
  };
  auto writer = app::MetricsWriter::create(directory->path());
  if (!writer) return failed(writer.error());
  auto reserve = app::DiskReserve::make(directory->path(), kSummary + workers * kSummaryOfWorker);
  if (!reserve) return failed(reserve.error());
  return RunRecord(*std::move(directory), *std::move(writer), *std::move(reserve));
}

Result<void> RunRecord::write_rows(base::Duration elapsed) {
  if (auto written = writer_.write(table_.drain(std::chrono::duration<double>(elapsed).count())); !written) {
    return written;
  }
  return curve_.write();
}

void RunRecord::metric(const std::string& worker, const run::Metric& metric) {
  table_.add(worker, metric.name, metric.value);
  if (metric.step) curve_.add(worker, metric.name, *metric.step, metric.value);
}

Result<std::optional<std::filesystem::path>> RunRecord::draw_curve() {
  using Drawn = std::optional<std::filesystem::path>;
  if (auto finished = curve_.finish(); !finished) return finished.error();
  if (curve_.rows() == 0 || curve_.rows() > kMostDrawn) return Drawn();
  const auto run = results::read_run(directory_.path(), results::Axis::step);
  if (!run) return run.error();
  const auto picture = results::plot(std::span<const results::RunCurves>(&*run, 1), {});
  if (!picture) return picture.error();
  const std::filesystem::path file = directory_.path() / "curve.svg";
  if (auto written = app::write_whole_file(file, *picture); !written) return written.error();
  return Drawn(file);
}

void RunRecord::add_sent(const std::vector<SentFrames>& sent) {
  for (const SentFrames& of : sent) {
    app::RunSummary::Sent& sum = sent_[of.kind];
    sum.frames += of.frames;
    sum.bytes += of.bytes;
  }
}

std::string RunRecord::summary(const app::Application& application, const run::Verdict& verdict, base::Duration elapsed,
                               std::vector<WorkerEnd> workers, std::vector<app::RunSummary::Lost> lost) const {
  app::RunSummary summary{.name = application.run.name,
                          .outcome = text_of(verdict.outcome),
                          .exit_code = verdict.exit_code,
                          .duration_s = std::chrono::duration<double>(elapsed).count(),
                          .seed = application.run.seed,
                          .placement = text_of(application.run.placement),
                          .deterministic = application.run.deterministic,
                          .fingerprint = fingerprint_,
                          .error = verdict.error,
                          .error_code = verdict.code == Errc::ok ? "" : std::string(to_string(verdict.code)),
                          .lost = std::move(lost),
                          .environment = environment()};
  for (const auto& [key, value] : table_.last()) summary.metrics[key.first + "." + key.second] = value;
  summary.frames_sent = sent_;
  for (WorkerEnd& worker : workers) {
    summary.workers.push_back({std::move(worker.name), std::move(worker.host), worker.pid, std::move(worker.error)});
  }
  return app::summary_text(summary);
}

Result<void> RunRecord::finish(const app::Application& application, const run::Verdict& verdict, base::Duration elapsed,
                               std::vector<WorkerEnd> workers, std::vector<app::RunSummary::Lost> lost) {
  const std::string text = summary(application, verdict, elapsed, std::move(workers), std::move(lost));
  if (app::write_whole_file(directory_.summary_file(), text)) return {};
  reserve_.release();
  return app::write_whole_file(directory_.summary_file(), text);
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream.seekg(0, std::ios::end)) return {};
  const std::streamoff size = stream.tellg();
  stream.seekg(std::max<std::streamoff>(0, size - kTail));
  std::string line;
  std::string last;
  while (std::getline(stream, line)) {
    if (line.starts_with(kKilledBy)) break;
    const bool is_routine = line.find("Z info ") != std::string::npos;
    if (!is_routine && line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last.substr(0, kLongestLine);
}

}  // namespace caftan::actors
