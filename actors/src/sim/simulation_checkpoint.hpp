/// Checkpoints of a simulation: a folder with a file per partition and a manifest, which is renamed into place last
/// (SM-15). A folder without a manifest is no checkpoint. Any number of partitions loads one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/sim/time.hpp"

namespace caftan::actors {

/// What a checkpoint says of the run that it is of.
struct SimulationManifest {
  std::uint64_t digest = 0;  ///< of the model
  std::uint64_t seed = 0;
  sim::Time border{};
  std::uint32_t partitions = 0;  ///< how many files there are
  std::string config{};          ///< of the partitions, as a file has it
  sim::Time counted_from{};      ///< its statistics have forgotten what was before

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& digest& seed& border& partitions& config& counted_from;
  }
};

/// What the file of a partition is, as its first record says.
inline constexpr const char* kPartitionKind = "caftan.sim.partition";

/// A checkpoint that was found.
struct SimulationCheckpoint {
  std::filesystem::path folder{};
  SimulationManifest manifest{};
  /// Returns the files of the partitions.
  std::vector<std::string> files() const;
};

/// Returns the folder for the checkpoint of a border, below that of a run.
/// @param step  how many saved borders lie before it and at it
std::filesystem::path checkpoint_folder(const std::filesystem::path& run, std::int64_t step);

/// Makes the folder for the files of the partitions. Errors: io_error.
Result<void> make_checkpoint_folder(const std::filesystem::path& folder);

/// Makes the folder, whose files are written, a checkpoint, and deletes all but the newest `keep` beside it. Errors:
/// io_error.
Result<void> finish_checkpoint(const std::filesystem::path& folder, const SimulationManifest& manifest,
                               std::int64_t keep);

/// Finds a checkpoint. @param path  of one, or of a run's folder or its checkpoints: the newest whole one
/// Errors, naming file and way out: io_error (nothing there, a file is missing), malformed_payload (damaged),
/// unsupported.
Result<SimulationCheckpoint> find_simulation_checkpoint(const std::filesystem::path& path);

/// Reads the files of the partitions to their ends. Errors, naming the file: io_error, malformed_payload (damaged),
/// unsupported.
Result<void> check_files(const SimulationCheckpoint& checkpoint);

/// Returns the keys of a config, those of tables as "table.key".
std::vector<std::string> keys_of(const std::string& config);

/// Returns the first key in which two configs differ, "mean = 2.0, the checkpoint has 1.0"; empty if there is none.
/// @param may_differ  keys that do not count
std::string config_difference(const std::string& here, const std::string& checkpoint,
                              const std::vector<std::string>& may_differ);

/// Returns why a run that goes on from the checkpoint cannot have this warm-up; empty if it can.
std::string warmup_difference(const SimulationManifest& checkpoint, sim::Time warmup);

}  // namespace caftan::actors
