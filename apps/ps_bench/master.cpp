#include "ps_bench/master.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "caftan/app/place.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"
#include "ps_bench/data.hpp"
#include "ps_bench/requirements.hpp"
#include "ps_bench/server.hpp"
#include "ps_bench/shapes.hpp"
#include "ps_bench/trainer.hpp"

namespace caftan::ps_bench {
namespace {

/// Returns "trainer_forward_pass_ms" for "forward_metric,forward_pass".
std::string metric_name(const std::string& role, const std::string& name) {
  std::string metric = role + "_" + name.substr(name.find(',') + 1) + "_ms";
  std::ranges::replace(metric, ' ', '_');
  return metric;
}

Result<void> write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text << std::flush;
  if (!stream) return Error(Errc::io_error, printable(file.string()) + ": cannot be written");
  return {};
}

}  // namespace

std::vector<app::MissingRequirement> Master::requirements(const Config& config, const app::RolePlace& place) {
  const auto servers = static_cast<std::uint32_t>(app::count_used(place, "servers"));
  const auto trainers = static_cast<std::uint32_t>(app::count_used(place, "trainers"));
  if (servers == 0 || trainers == 0) return {};  // which `check` reports by itself
  return find_missing(config, servers, trainers);
}

Master::Master(RoleContext& context, Config config)
    : context_(context),
      config_(config),
      servers_(context.uses<Server>("servers")),
      trainers_(context.uses<Trainer>("trainers")) {}

Plan Master::plan() const {
  return {.rule = config_.rule,
          .layout = config_.layout,
          .servers = static_cast<std::uint32_t>(servers_.size()),
          .trainers = static_cast<std::uint32_t>(trainers_.size()),
          .lr = config_.lr,
          .bucket = config_.bucket.bytes,
          .model = config_.model,
          .seed = context_.seed("parameters")};
}

Result<void> Master::run(std::stop_token stop) {
  if (auto opened = open(); !opened) return opened;
  if (config_.warm_up > 0) {
    if (auto warm = train(config_.warm_up, stop); !warm) return warm.error();
    if (auto reset = open_servers(); !reset) return reset;
    context_.log("warmed up");
  }
  const auto reports = train(config_.epochs, stop);
  if (!reports) return reports.error();
  if (auto equal = check_equal(*reports); !equal) return equal;
  const auto report = collect(*reports);
  if (!report) return report.error();
  return show(*report, *reports);
}

Result<void> Master::open() {
  if (auto opened = open_servers(); !opened) return opened;
  const Samples samples = make_samples(config_.data, context_.seed("data"));
  TrainerOrder order{.plan = plan()};
  std::vector<Future<void>> opening;
  for (const RRef<Trainer>& trainer : trainers_) {
    order.batches = deal(samples, config_.batch, order.trainer, order.plan.trainers);
    opening.push_back(trainer.rpc_async<&Trainer::open>(order));
    ++order.trainer;
  }
  for (auto& one : opening) {
    if (auto opened = std::move(one).result(); !opened) return opened;
  }
  return {};
}

Result<void> Master::open_servers() {
  std::vector<Future<void>> opening;
  for (std::uint32_t server = 0; server < servers_.size(); ++server) {
    opening.push_back(servers_[server].rpc_async<&Server::open>(plan(), server));
  }
  for (auto& one : opening) {
    if (auto opened = std::move(one).result(); !opened) return opened;
  }
  return {};
}

/// Lets all trainers train, and waits for all. The first error ends the wait.
Result<std::vector<TrainerReport>> Master::train(std::int64_t epochs, const std::stop_token& stop) {
  const base::TimePoint started = clock_.now();
  std::vector<Future<TrainerReport>> running;
  for (const RRef<Trainer>& trainer : trainers_) {
    // The calls of a trainer have time-outs of their own; the whole call has none.
    running.push_back(trainer.with({.timeout = base::Duration(0)}).rpc_async<&Trainer::train>(servers_, epochs));
  }
  std::vector<TrainerReport> reports;
  std::optional<Error> failed;
  while (reports.size() < running.size() && !failed) {
    // A later one is looked at, too: its error may be what an earlier one waits for.
    for (std::size_t i = reports.size(); i < running.size() && !failed; ++i) {
      if (!running[i].ready()) continue;
      if (const auto ended = running[i].outcome_status(); !ended) failed = ended.error();
    }
    if (stop.stop_requested() && !failed) failed = Error(Errc::cancelled, "stopped while the trainers trained");
    if (failed || !running[reports.size()].wait_for(std::chrono::milliseconds(50))) continue;
    auto report = running[reports.size()].result();
    if (report) {
      reports.push_back(*std::move(report));
    } else {
      failed = report.error();
    }
  }
  if (failed) {
    for (auto& one : running) one.cancel();
    return *failed;
  }
  seconds_ = std::chrono::duration<double>(clock_.now() - started).count();
  return reports;
}

/// Checks that a rule that averages has given the trainers of a server the same model, bit for bit.
Result<void> Master::check_equal(const std::vector<TrainerReport>& reports) const {
  if (config_.rule == Rule::immediate) return {};
  const auto trainers = static_cast<std::uint32_t>(trainers_.size());
  const auto servers = static_cast<std::uint32_t>(servers_.size());
  for (std::uint32_t server = 0; server < servers; ++server) {
    const TrainerRange range = trainers_of(config_.layout, server, servers, trainers);
    for (std::uint32_t trainer = range.first; trainer < range.first + range.count; ++trainer) {
      if (reports[trainer].checksum == reports[range.first].checksum) continue;
      return Error(Errc::user_error, "the models of " + reports[range.first].worker + " and " +
                                         reports[trainer].worker +
                                         " differ, which got the same averages: the measurement is void");
    }
  }
  return {};
}

Result<Report> Master::collect(const std::vector<TrainerReport>& reports) {
  Report report{.config = config_, .seconds = seconds_};
  for (const TrainerReport& one : reports) {
    report.trainers.push_back({one.worker, one.times});
    report.batches += one.batches;
  }
  for (const RRef<Server>& server : servers_) {
    auto measured = server.try_rpc_sync<&Server::report>();
    if (!measured) return measured.error();
    report.servers.push_back({std::move(measured->worker), std::move(measured->times)});
  }
  return report;
}

Result<void> Master::show(const Report& report, const std::vector<TrainerReport>& reports) {
  const auto means = [&](const std::string& role, const std::vector<Measured>& workers) {
    std::vector<Times> times;
    for (const Measured& worker : workers) times.push_back(worker.times);
    for (const auto& [name, values] : join(times)) {
      context_.metric(metric_name(role, name), statistics_of(values).mean);
    }
  };
  means("trainer", report.trainers);
  means("server", report.servers);
  const double rate = static_cast<double>(report.batches) / report.seconds;
  context_.metric("batches_per_s", rate);
  for (const std::string& line : tables_of(report)) context_.report(line);
  context_.report("measured: " + std::to_string(report.batches) + " batches of " +
                  count_of(static_cast<std::int64_t>(trainers_.size()), "trainer") + " and " +
                  count_of(static_cast<std::int64_t>(servers_.size()), "server") + ", " + name_of(config_.rule) +
                  ", in " + format_fixed(report.seconds, 3) + " s, " + format_fixed(rate, 1) + " batches/s, loss " +
                  format_fixed(reports.front().first_loss, 4) + " to " + format_fixed(reports.front().last_loss, 4));
  if (context_.output_directory().empty()) return {};
  if (auto written = write_file(context_.output_directory() / kJsonName, json_of(report)); !written) return written;
  return write_file(context_.output_directory() / kCsvName, csv_of(report));
}

}  // namespace caftan::ps_bench
