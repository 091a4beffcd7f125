#include "caftan/sim/sequential.hpp"

#include <utility>

#include "caftan/sim/internal/grant_rule.hpp"
#include "caftan/sim/internal/kernel.hpp"
#include "sha256.hpp"

namespace caftan::sim {

std::string fingerprint(std::span<const std::uint64_t> hashes) { return sha256(std::as_bytes(hashes)); }

Result<SequentialRun> run_sequential(const std::function<void(Builder&)>& build, const SequentialOptions& options) {
  const Result<GrantRule> times = GrantRule::make({.end_time = options.end_time, .warmup = options.warmup}, 1);
  if (!times) return times.error();
  Result<std::unique_ptr<Kernel>> made =
      make_kernel(build, {.seed = options.seed, .events = options.events, .records = options.record});
  if (!made) return made.error();
  Kernel& kernel = **made;
  if (auto done = kernel.start(); !done) return done.error();
  if (options.warmup > 0) {
    const Time warmup = time_of(options.warmup).value();
    if (auto done = kernel.run_until(warmup); !done) return done.error();
    kernel.reset_statistics(std::min(warmup, kernel.finish()));
  }
  if (auto done = kernel.run_until(times->end()); !done) return done.error();
  SequentialRun run{.end = std::min(times->end(), kernel.finish()),
                    .sent = kernel.counters().sent,
                    .handled = kernel.counters().handled,
                    .cancelled = kernel.counters().cancelled,
                    .pending = kernel.pending()};
  const std::vector<LpStatistic> statistics = kernel.statistics(run.end);
  Result<std::vector<MergedStatistic>> merged = merge_statistics(statistics);
  if (!merged) return merged.error();
  run.statistics = *std::move(merged);
  run.records = kernel.recorder().take();
  sort_records(run.records);
  run.missing_series = kernel.recorder().missing();
  const Result<std::vector<std::uint64_t>> hashes = kernel.hashes();
  if (!hashes) return hashes.error();
  run.fingerprint = fingerprint(*hashes);
  return run;
}

}  // namespace caftan::sim
