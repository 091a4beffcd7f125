/// The checkpoints of agents: a file with what is needed to act, and with what its application needs to go on. `caftan
/// play` reads the first part, whichever application has written the file. Start with `write_agent` and `read_agent`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "agents/environments.hpp"
#include "agents/policy.hpp"
#include "caftan/base/result.hpp"
#include "caftan/wire/checkpoint_file.hpp"

namespace caftan::agents {

/// Where checkpoints are, in the folder of a run.
inline constexpr const char* kCheckpoints = "checkpoints";
/// The name of the checkpoint with the best evaluation.
inline constexpr const char* kBest = "best";

/// What acts, and in which environment.
struct Agent {
  EnvironmentChoice environment{};
  PolicyShape shape{};
  std::vector<float> weights{};  ///< as Policy::load takes them
  std::int64_t step = 0;         ///< of the training: frames, episodes
  std::string step_name{};       ///< "frames"

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& environment& shape& weights& step& step_name;
  }
};

/// A file that was read.
struct AgentFile {
  std::filesystem::path path{};
  Agent agent{};
  wire::CheckpointFile file{};  ///< with the records of the application
};

/// Writes FOLDER/step-NNNNNN and removes the oldest of these beyond `keep`.
/// @param more  the records of the application
/// @return the file. Errors: io_error, limit_exceeded (no memory).
Result<std::filesystem::path> write_agent(const std::filesystem::path& folder, const Agent& agent,
                                          std::vector<wire::CheckpointRecord> more, std::int64_t keep);

/// Writes FOLDER/best in place of the one before. Errors: as write_agent.
Result<std::filesystem::path> write_best(const std::filesystem::path& folder, const Agent& agent,
                                         std::vector<wire::CheckpointRecord> more);

/// Takes FROM/best over into another folder, if there is one of `step` or before.
/// Errors: those of read_agent and write_agent.
Result<void> carry_best(const std::filesystem::path& from, const std::filesystem::path& to, std::int64_t step);

/// Which checkpoint of a folder is wanted.
enum class Wanted { newest, best };

/// Reads a checkpoint.
/// @param path    a file, a folder of checkpoints or that of a run
/// @param wanted  of a folder: best = that, or the newest where there is none
/// Errors, naming the file: io_error (there is none), malformed_payload (cut off, damaged, no agent's, weights that do
///   not fit their shape), unsupported (of a newer version).
Result<AgentFile> read_agent(const std::filesystem::path& path, Wanted wanted);

}  // namespace caftan::agents
