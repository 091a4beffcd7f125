#include "rl_bench/coordinator.hpp"

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"
#include "rl_bench/agent.hpp"
#include "rl_bench/observer.hpp"
#include "rl_bench/report.hpp"

namespace caftan::rl_bench {
namespace {

/// The metrics of the run, by their names in the report.
std::string metric_name(const std::string& name, int percent) {
  std::string metric = name.substr(0, name.find(" ("));
  for (char& letter : metric) {
    if (letter == ' ') letter = '_';
  }
  return metric + "_p" + std::to_string(percent);
}

}  // namespace

Coordinator::Coordinator(RoleContext& context, Config config)
    : context_(context),
      config_(config),
      agent_(context.use<Agent>("agent")),
      observers_(context.uses<Observer>("observers")) {}

Result<void> Coordinator::run(std::stop_token stop) {
  auto facts = agent_.try_rpc_sync<&Agent::facts>();
  if (!facts) return facts.error();
  facts_ = *std::move(facts);
  for (std::int64_t episode = 1; episode <= config_.episodes; ++episode) {
    if (stop.stop_requested()) {
      return Error(Errc::cancelled, "stopped after " + std::to_string(episode - 1) + " episodes");
    }
    if (auto played = play_episode(); !played) return played;
    const double rate = static_cast<double>(measured_.observer_latency.size()) / seconds_;
    context_.metric("requests_per_s", rate, {.step = episode});
    context_.progress(episode, config_.episodes,
                      "episode " + std::to_string(episode) + " of " + std::to_string(config_.episodes) + "  " +
                          format_fixed(rate, 0) + " requests/s");
  }
  return finish();
}

Result<void> Coordinator::play_episode() {
  const EpisodeOrder order{.steps = config_.steps, .state_size = facts_.state_size, .batch = facts_.batch};
  const base::TimePoint started = clock_.now();
  std::vector<Future<std::vector<double>>> playing;
  for (const RRef<Observer>& observer : observers_) {
    // Each request has a time-out of its own; the whole call has none.
    const auto patient = observer.with({.timeout = base::Duration(0)});
    playing.push_back(patient.rpc_async<&Observer::run_episode>(agent_, order));
  }
  std::optional<Error> failed;
  for (auto& one : playing) {
    const auto latencies = std::move(one).result();
    if (!latencies) {
      if (!failed) failed = latencies.error();
      continue;
    }
    measured_.observer_latency.insert(measured_.observer_latency.end(), latencies->begin(), latencies->end());
  }
  if (failed) return *failed;
  seconds_ += std::chrono::duration<double>(clock_.now() - started).count();
  const auto times = agent_.try_rpc_sync<&Agent::take_times>();
  if (!times) return times.error();
  for (std::size_t i = 0; i < times->latency.size(); ++i) {
    measured_.agent_latency.push_back(times->latency[i]);
    measured_.agent_throughput.push_back(static_cast<double>(times->size[i]) / times->latency[i]);
  }
  return {};
}

Result<void> Coordinator::finish() {
  const auto metrics = summarize(measured_);
  for (const auto& [name, percentiles] : metrics) {
    for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
      context_.metric(metric_name(name, kPercentiles[i]), percentiles[i]);
    }
  }
  const auto requests = static_cast<double>(measured_.observer_latency.size());
  context_.metric("mean_batch_size", requests / static_cast<double>(measured_.agent_latency.size()));
  context_.report("measured: " + format_fixed(requests, 0) + " requests of " + std::to_string(observers_.size()) +
                  " observers in " + format_fixed(seconds_, 3) + " s, " + format_fixed(requests / seconds_, 0) +
                  " requests/s, mean batch size " +
                  format_fixed(requests / static_cast<double>(measured_.agent_latency.size()), 1));
  const Arguments arguments{.world_size = static_cast<std::int64_t>(observers_.size()) + 2,
                            .batch = facts_.batch,
                            .state_size = facts_.state_size,
                            .nlayers = facts_.nlayers,
                            .out_features = facts_.out_features};
  const std::string report = make_report(arguments, metrics);
  const auto table = table_of(report);
  if (!table) return table.error();
  for (const std::string& line : *table) context_.report(line);
  if (context_.output_directory().empty()) return {};
  const auto file = context_.output_directory() / kReportName;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << report << std::flush;
  if (!stream) return Error(Errc::io_error, file.string() + ": cannot be written");
  return {};
}

}  // namespace caftan::rl_bench
