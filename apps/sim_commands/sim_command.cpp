#include "sim_commands/sim_command.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "caftan/base/settings_io.hpp"
#include "sim_commands/event_diff.hpp"
#include "sim_commands/series_plot.hpp"
#include "sim_commands/speed_up_plot.hpp"

namespace caftan::sim_commands {
namespace {

constexpr int kBadCommandLine = 2;

int refuse(const std::string& text, int code) {
  std::fputs(("error: " + printable(text) + "\n").c_str(), stderr);
  return code;
}

int diff(const std::string& one, const std::string& other) {
  const auto found = compare_runs(one, other);
  if (!found) return refuse(found.error().text(), kBadCommandLine);
  for (const std::string& line : found->lines) std::puts(line.c_str());
  return found->is_equal ? 0 : 1;
}

int plot(const std::filesystem::path& run, const std::string& out) {
  const bool is_of_sweep = is_sweep(run);
  const auto picture = is_of_sweep ? draw_speed_up(run) : draw_series(run);
  if (!picture) return refuse(picture.error().text(), kBadCommandLine);
  const std::filesystem::path file =
      out.empty() ? run / (is_of_sweep ? "speed-up.svg" : "series.svg") : std::filesystem::path(out);
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << *picture << std::flush;
  if (!stream) return refuse(file.string() + ": it cannot be written", 1);
  std::puts(printable(file.string()).c_str());
  return 0;
}

/// Leaves a word for the clock of a run, which looks for it at its borders.
int tell(const std::filesystem::path& run, const std::string& word) {
  std::error_code error;
  if (!std::filesystem::exists(run / "resolved.toml", error))
    return refuse(run.string() + ": it is no folder of a run", kBadCommandLine);
  if (std::filesystem::exists(run / "summary.json", error))
    return refuse(run.string() + ": the run is over", kBadCommandLine);
  const std::filesystem::path file = run / "sim-command";
  const std::filesystem::path beside = run / "sim-command.new";
  std::ofstream stream(beside, std::ios::trunc);
  stream << word << "\n" << std::flush;
  if (!stream) return refuse(beside.string() + ": it cannot be written", 1);
  std::filesystem::rename(beside, file, error);
  return error ? refuse(file.string() + ": " + error.message(), 1) : 0;
}

}  // namespace

int run_command(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string usage = "usage: caftan " + std::string(kUsage) + "\n";
  const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::ranges::any_of(words, is_help)) {
    std::fputs(usage.c_str(), stdout);
    return 0;
  }
  const std::string verb = words.empty() ? std::string() : words.front();
  if (verb == "diff" && words.size() == 3) return diff(words[1], words[2]);
  if (verb == "plot" && words.size() == 2) return plot(words[1], "");
  if (verb == "plot" && words.size() == 4 && words[2] == "--out") return plot(words[1], words[3]);
  if ((verb == "pause" || verb == "go" || verb == "step") && words.size() == 2) return tell(words[1], verb);
  std::fputs(usage.c_str(), stderr);
  return kBadCommandLine;
}

}  // namespace caftan::sim_commands
