/// `ClockRun`: one run of a simulation as its clock drives it: opens the partitions, grants border after border, saves,
/// pauses, and gathers the results. What is granted next is decided by `sim::GrantRule`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "caftan/actors/simulation.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/sim/internal/grant_rule.hpp"
#include "sim/clock_files.hpp"
#include "sim/clock_meter.hpp"
#include "sim/simulation_checkpoint.hpp"

namespace caftan::actors {

/// Threads: that of the role's run().
class ClockRun {
 public:
  ClockRun(RoleContext& context, const sim::ClockConfig& config, std::vector<sim::PartitionPort> partitions,
           std::vector<std::string> members, std::stop_token stop);

  /// Errors: as ClockDriver::run.
  Result<void> run();

 private:
  Result<void> open();
  Result<void> check_opened(const std::vector<sim::OpenReply>& replies);
  Result<void> find_resumed();
  Result<void> make_rule();
  /// Grants until the end, or until the run is asked to stop.
  Result<void> advance_to_end();
  Result<void> advance(const sim::Grant& grant);
  Result<void> take(std::uint32_t partition, sim::BorderReply reply, bool wants_hash, std::uint64_t& hash,
                    std::vector<sim::Record>& records);
  Result<void> at_border(const sim::Grant& grant);
  Result<void> save();
  Result<void> pause();
  Result<void> take_results();
  Result<void> close();

  /// Waits for all. Errors: the first one that says what is wrong, with the newest checkpoint if a worker is lost.
  template <class T>
  Result<std::vector<T>> all(std::vector<Future<T>> futures);
  Result<void> all_done(std::vector<Future<void>> futures);
  template <class T>
  Result<void> wait_for_all(std::vector<Future<T>>& futures);
  Error worst_of(const std::vector<Error>& errors) const;

  sim::Time most();
  base::Duration until_due();
  void adapt(base::Duration took, sim::Time length);
  /// Waits, at most for `time`, until the run is asked to stop.
  void wait(base::Duration time) const;
  base::Duration elapsed() const;
  std::optional<std::string> take_command() const;

  RoleContext& context_;
  const sim::ClockConfig config_;
  const std::vector<sim::PartitionPort> partitions_;
  const std::vector<std::string> members_;
  const std::stop_token stop_;
  ClockFiles files_;
  std::optional<SimulationCheckpoint> resumed_;
  sim::OpenReply model_;
  std::optional<sim::GrantRule> rule_;
  std::optional<ClockMeter> meter_;
  std::vector<ClockMeter::Work> work_;
  std::vector<std::string> missing_series_;
  std::string newest_checkpoint_;
  base::TimePoint begin_{};
  sim::Time slice_{};  // how far a grant goes at most, so that the run is looked at a few times a second
};

/// Returns the file by which `caftan sim` gives a command to a run.
std::filesystem::path command_file(const std::filesystem::path& run);

}  // namespace caftan::actors
