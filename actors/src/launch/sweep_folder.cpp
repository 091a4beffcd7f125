#include "launch/sweep_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "caftan/app/internal/run_directory.hpp"
#include "caftan/base/fnv1a.hpp"
#include "caftan/base/whole_file.hpp"

namespace caftan::actors {
namespace {

constexpr const char* kState = "sweep.toml";

Error elsewhere(const std::filesystem::path& path, const std::string& what) {
  return {Errc::invalid_config, path.string() + ": " + what + "; name another folder with --out"};
}

/// Returns the state that is kept in the folder, or that of a sweep that begins.
Result<app::SweepState> find_state(const std::filesystem::path& path, const std::string& digest,
                                   const app::SweepPlan& plan) {
  std::error_code error;
  if (std::filesystem::exists(path / kState, error)) {
    const auto text = base::read_whole_file(path / kState);
    if (!text) return text.error();
    auto state = app::SweepState::parse(*text, digest, plan);
    if (!state) return elsewhere(path, "is the folder of another sweep: " + state.error().text());
    return state;
  }
  const bool is_empty = std::filesystem::is_empty(path, error);
  if (error) return Error(Errc::io_error, path.string() + ": " + error.message());
  if (!is_empty) return elsewhere(path, "is not empty, and no sweep was begun in it");
  return app::SweepState(digest, plan);
}

}  // namespace

std::optional<std::string> digest_of_file(const std::filesystem::path& file) {
  const auto text = base::read_whole_file(file);
  if (!text) return std::nullopt;
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(base::fnv1a(*text)));
  return hex.data();
}

Result<SweepFolder> SweepFolder::open(const std::filesystem::path& path, const std::string& digest,
                                      const app::SweepPlan& plan) {
  auto lock = std::make_unique<Descriptor>(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock->get() < 0) return Error(Errc::io_error, path.string() + ": " + std::strerror(errno));
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error(Errc::overloaded, path.string() + ": another sweep works in this folder");
    return Error(Errc::io_error, path.string() + ": " + std::strerror(errno));
  }
  auto state = find_state(path, digest, plan);
  if (!state) return state.error();
  SweepFolder folder(path, std::move(lock), *std::move(state), plan.runs());
  for (std::size_t run = 0; run < plan.runs(); ++run) {
    if (folder.state_.has_succeeded(run) && !folder.summary_of(run)) folder.state_.set_open(run);
  }
  if (auto saved = folder.save(); !saved) return saved.error();
  return Result<SweepFolder>(std::move(folder));
}

std::filesystem::path SweepFolder::folder_of(std::size_t run) const { return path_ / app::sweep_run_name(run, runs_); }

std::filesystem::path SweepFolder::newest_of(std::size_t run) const {
  std::error_code error;
  return std::filesystem::read_symlink(folder_of(run) / "latest", error);
}

std::optional<app::RunSummary> SweepFolder::summary_of(std::size_t run) const {
  const auto text = base::read_whole_file(folder_of(run) / "latest" / "summary.json");
  if (!text) return std::nullopt;
  auto summary = app::read_summary(*text);
  if (!summary) return std::nullopt;
  return *std::move(summary);
}

Result<void> SweepFolder::save() const { return app::write_whole_file(path_ / kState, state_.text()); }

}  // namespace caftan::actors
