#include "sim/simulation_checkpoint.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <system_error>

#include "caftan/wire/checkpoint_file.hpp"
#include "caftan/wire/checkpoint_folder.hpp"

namespace caftan::actors {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestKind = "caftan.sim.manifest";
constexpr const char* kManifest = "manifest";

/// Returns the whole checkpoints of a folder, the newest last.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  return wire::find_checkpoints(folder, [](const fs::path& path) {
    std::error_code error;
    return fs::exists(path / kManifest, error);
  });
}

Result<fs::path> find_folder(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path / kManifest, error)) return path;
  for (const fs::path& folder : {path, path / "checkpoints"}) {
    if (const auto found = checkpoints_in(folder); !found.empty()) return found.back();
  }
  return Error(Errc::io_error,
               path.string() +
                   ": there is no whole checkpoint; resume names the folder of a checkpoint (step-N with a file " +
                   kManifest + ") or of a run that has some, or is left out to start anew");
}

/// Returns the values of a config by key, those of tables as "table.key".
std::map<std::string, std::string> values_of(const std::string& config) {
  std::map<std::string, std::string> values;
  std::string table;
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[") && line.ends_with("]")) {
      table = line.substr(1, line.size() - 2) + ".";
    } else if (const std::size_t at = line.find(" = "); at != std::string::npos && !line.starts_with("#")) {
      values[table + line.substr(0, line.find(' '))] = line.substr(at + 3);
    }
  }
  return values;
}

}  // namespace

std::vector<std::string> SimulationCheckpoint::files() const {
  std::vector<std::string> files;
  for (std::uint32_t i = 0; i < manifest.partitions; ++i)
    files.push_back((folder / ("partition-" + std::to_string(i))).string());
  return files;
}

fs::path checkpoint_folder(const fs::path& run, std::int64_t step) {
  return run / "checkpoints" / wire::checkpoint_name(step);
}

Result<void> make_checkpoint_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return Error(Errc::io_error, folder.string() + ": the folder of the checkpoint cannot be made: " + error.message());
}

Result<void> finish_checkpoint(const fs::path& folder, const SimulationManifest& manifest, std::int64_t keep) {
  Result<wire::Bytes> bytes = wire::encode(manifest);
  if (!bytes) return bytes.error();
  wire::CheckpointFile file{.kind = kManifestKind, .records = {}};
  file.records.push_back({"manifest", *std::move(bytes)});
  if (auto done = wire::write_checkpoint_file(folder / kManifest, file); !done) return done;
  const auto all = checkpoints_in(folder.parent_path());
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < all.size(); ++i) {
    std::error_code ignored;                  // an old checkpoint that stays does not end the run
    fs::remove(all[i] / kManifest, ignored);  // without its manifest the folder is no checkpoint any more
    fs::remove_all(all[i], ignored);
  }
  return {};
}

Result<SimulationCheckpoint> find_simulation_checkpoint(const fs::path& path) {
  const auto folder = find_folder(path);
  if (!folder) return folder.error();
  const auto file = wire::read_checkpoint_file(*folder / kManifest, kManifestKind);
  if (!file) return file.error();
  const auto bytes = file->find("manifest");
  if (!bytes) return bytes.error();
  SimulationCheckpoint found{.folder = *folder, .manifest = {}};
  if (auto read = wire::decode_into(*bytes, found.manifest); !read) {
    return Error(read.error().code(), (*folder / kManifest).string() + ": " + read.error().text());
  }
  for (const std::string& part : found.files()) {
    std::error_code error;
    if (fs::exists(part, error)) continue;
    return Error(Errc::io_error, part + ": it is missing; use an earlier checkpoint");
  }
  return found;
}

Result<void> check_files(const SimulationCheckpoint& checkpoint) {
  for (const std::string& path : checkpoint.files()) {
    if (const auto file = wire::read_checkpoint_file(path, kPartitionKind); !file) return file.error();
  }
  return {};
}

std::vector<std::string> keys_of(const std::string& config) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_of(config)) keys.push_back(key);
  return keys;
}

std::string config_difference(const std::string& here, const std::string& checkpoint,
                              const std::vector<std::string>& may_differ) {
  const auto ours = values_of(here);
  const auto theirs = values_of(checkpoint);
  for (const auto& [key, value] : ours) {
    if (std::ranges::find(may_differ, key) != may_differ.end()) continue;
    const auto other = theirs.find(key);
    if (other == theirs.end()) return key + " = " + value + ", the checkpoint has no such key";
    if (other->second != value) return key + " = " + value + ", the checkpoint has " + other->second;
  }
  return {};
}

std::string warmup_difference(const SimulationManifest& checkpoint, sim::Time warmup) {
  if (warmup > checkpoint.border || warmup == checkpoint.counted_from) return {};
  const std::string from = to_string(checkpoint.counted_from);
  return "has statistics that begin at virtual time " + from + ", so that warmup = " + to_string(warmup) +
         " would have no effect; set warmup to " + from + ", or to a time behind " + to_string(checkpoint.border);
}

}  // namespace caftan::actors
