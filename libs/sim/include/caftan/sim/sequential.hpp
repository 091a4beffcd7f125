/// A whole simulation in this thread: `run_sequential<Model>(config, options)`. It needs no file, no worker and no
/// libtorch; the results are the bits of a run with any number of partitions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "caftan/sim/model.hpp"
#include "caftan/sim/record.hpp"

namespace caftan::sim {

/// What a sequential run does.
struct SequentialOptions {
  double end_time = 0;                 ///< units; events at or after it stay pending; > 0, required
  std::uint64_t seed = 0;              ///< all random streams follow from it
  double warmup = 0;                   ///< units; statistics before it are forgotten
  RecordPlan record{};                 ///< which series are kept
  std::uint64_t events = 100'000'000;  ///< the most pending events
};

/// What a run has left.
struct SequentialRun {
  Time end{};                   ///< the end of the run: `end_time`, or what `finish` asked for
  std::uint64_t sent = 0;       ///< events that were scheduled
  std::uint64_t handled = 0;    ///< events that were handled
  std::uint64_t cancelled = 0;  ///< events that were taken back
  std::uint64_t pending = 0;    ///< events that are left
  std::vector<MergedStatistic> statistics{};
  std::vector<Record> records{};
  std::vector<std::string> missing_series{};  ///< series of the plan that no process has recorded, for a warning
  std::string fingerprint{};                  ///< 64 hexadecimal digits (SM-18)
};

/// Returns the fingerprint of a run: the SHA-256 over the hashes of all processes in the order of ids.
std::string fingerprint(std::span<const std::uint64_t> hashes);

/// Runs a model whose build is `build`. Errors: as run_sequential.
Result<SequentialRun> run_sequential(const std::function<void(Builder&)>& build, const SequentialOptions& options);

/// Runs `Model` to the end.
/// @param config  what Model::build gets
/// Errors: invalid_config (times, the model's lookahead), bad_arguments, lookahead_violation, limit_exceeded,
/// user_error: what
///   handlers do wrong, naming process, event and time.
/// Threads: any; handlers run in this one.
template <class Model>
Result<SequentialRun> run_sequential(const typename Model::Config& config, const SequentialOptions& options) {
  return run_sequential([&config](Builder& builder) { Model::build(builder, config); }, options);
}

}  // namespace caftan::sim
