#include "agents/agent_file.hpp"

#include <system_error>
#include <utility>

#include "caftan/wire/archive.hpp"
#include "caftan/wire/checkpoint_folder.hpp"

namespace caftan::agents {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKind = "agent";
constexpr const char* kRecord = "agent";
/// Sizes of networks beyond which a file is no agent's.
constexpr std::size_t kMostSize = std::size_t{1} << 20;

Error at_file(const fs::path& file, const Error& error) { return {error.code(), file.string() + ": " + error.text()}; }

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  return wire::find_checkpoints(folder, [](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
  });
}

Result<fs::path> find_agent(const fs::path& path, Wanted wanted) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Error(Errc::io_error, "there is no " + path.string() +
                                     "; a path without a leading / is relative to the file or to where the "
                                     "command is started");
  }
  if (!fs::is_directory(path, error)) return path;
  for (const fs::path& folder : {path, path / kCheckpoints}) {
    if (wanted == Wanted::best && fs::is_regular_file(folder / kBest, error)) return folder / kBest;
    if (const auto found = checkpoints_in(folder); !found.empty()) return found.back();
    if (fs::is_regular_file(folder / kBest, error)) return folder / kBest;
  }
  return Error(Errc::io_error, path.string() + ": there is no checkpoint of an agent; a run has some in its folder " +
                                   kCheckpoints + ", if its file asks for these");
}

Result<void> write(const fs::path& path, const wire::CheckpointFile& file) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return Error(Errc::io_error, "cannot make " + path.parent_path().string() + ": " + error.message());
  return wire::write_checkpoint_file(path, file);
}

Result<void> write(const fs::path& path, const Agent& agent, std::vector<wire::CheckpointRecord> more) {
  auto bytes = wire::encode(agent);
  if (!bytes) return bytes.error();
  wire::CheckpointFile file{.kind = kKind, .records = std::move(more)};
  file.records.push_back({kRecord, *std::move(bytes)});
  return write(path, file);
}

bool is_possible(const PolicyShape& shape) noexcept {
  for (const std::size_t size : {shape.observation, shape.hidden, shape.outputs}) {
    if (size == 0 || size > kMostSize) return false;
  }
  return shape.layers > 0 && shape.layers < 1024;
}

}  // namespace

Result<fs::path> write_agent(const fs::path& folder, const Agent& agent, std::vector<wire::CheckpointRecord> more,
                             std::int64_t keep) {
  fs::path path = folder / wire::checkpoint_name(agent.step);
  if (auto written = write(path, agent, std::move(more)); !written) return written.error();
  const auto all = checkpoints_in(folder);
  const auto count = static_cast<std::int64_t>(all.size());
  for (std::int64_t i = 0; i + keep < count; ++i) {
    std::error_code ignored;  // an old checkpoint that stays is no reason to end a training
    fs::remove(all[static_cast<std::size_t>(i)], ignored);
  }
  return path;
}

Result<fs::path> write_best(const fs::path& folder, const Agent& agent, std::vector<wire::CheckpointRecord> more) {
  fs::path path = folder / kBest;
  if (auto written = write(path, agent, std::move(more)); !written) return written.error();
  return path;
}

Result<void> carry_best(const fs::path& from, const fs::path& to, std::int64_t step) {
  std::error_code error;
  if (!fs::is_regular_file(from / kBest, error)) return {};
  const auto best = read_agent(from / kBest, Wanted::best);
  if (!best) return best.error();
  if (best->agent.step > step) return {};
  return write(to / kBest, best->file);
}

Result<AgentFile> read_agent(const fs::path& path, Wanted wanted) {
  const auto found = find_agent(path, wanted);
  if (!found) return found.error();
  auto file = wire::read_checkpoint_file(*found, kKind);
  if (!file) return file.error();
  const auto bytes = file->find(kRecord);
  if (!bytes) return at_file(*found, bytes.error());
  auto agent = wire::decode<Agent>(*bytes);
  if (!agent) return at_file(*found, agent.error());
  if (!is_possible(agent->shape) || agent->weights.size() != weight_count(agent->shape) ||
      agent->environment.action_repeat < 1) {
    return at_file(*found, Error(Errc::malformed_payload, "its weights do not fit the sizes of its policy"));
  }
  return AgentFile{.path = *found, .agent = *std::move(agent), .file = *std::move(file)};
}

}  // namespace caftan::agents
