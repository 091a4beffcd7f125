#include "rl_bench/report_command.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "caftan/base/settings_io.hpp"
#include "rl_bench/report.hpp"

namespace caftan::rl_bench {
namespace {

constexpr int kBadCommandLine = 2;

int refuse(const std::string& text, int code) {
  std::fputs(("error: " + text + "\n").c_str(), stderr);
  return code;
}

/// Returns the folders 001, 002, ... of a sweep, in their order.
std::vector<std::filesystem::path> runs_of(const std::filesystem::path& sweep) {
  std::vector<std::filesystem::path> runs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(sweep, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos) runs.push_back(entry.path());
  }
  std::ranges::sort(runs);
  return runs;
}

/// Reads the reports of all runs. Errors: io_error (a run without one).
Result<std::vector<std::string>> read_reports(const std::vector<std::filesystem::path>& runs) {
  std::vector<std::string> reports;
  for (const std::filesystem::path& run : runs) {
    const std::filesystem::path file = run / "latest" / kReportName;
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
      return Error(Errc::io_error, printable(file.string()) +
                                       ": cannot be read; the same sweep again, with --out, runs what has "
                                       "not succeeded");
    }
    std::ostringstream text;
    text << stream.rdbuf();
    reports.push_back(std::move(text).str());
  }
  return reports;
}

}  // namespace

int run_report_command(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string usage = "usage: caftan " + std::string(kReportUsage) + "\n";
  if (std::ranges::find(words, "--help") != words.end() || std::ranges::find(words, "-h") != words.end()) {
    std::fputs(usage.c_str(), stdout);
    return 0;
  }
  const bool has_out = words.size() == 3 && words[1] == "--out";
  if ((words.size() != 1 && !has_out) || words.front().starts_with("-")) {
    std::fputs(usage.c_str(), stderr);
    return kBadCommandLine;
  }
  const std::filesystem::path sweep = words.front();
  const auto runs = runs_of(sweep);
  if (runs.empty())
    return refuse(printable(sweep.string()) + ": no folder of a sweep, or one without a run", kBadCommandLine);
  const auto reports = read_reports(runs);
  if (!reports) return refuse(reports.error().text(), kBadCommandLine);
  const auto joined = join_reports(*reports);
  if (!joined) return refuse(printable(sweep.string()) + ": " + joined.error().text(), kBadCommandLine);
  const std::filesystem::path file = has_out ? std::filesystem::path(words[2]) : sweep / kReportName;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << *joined << std::flush;
  if (!stream) return refuse(printable(file.string()) + ": cannot be written", 1);
  const auto table = table_of(*joined);
  if (!table) return refuse(table.error().text(), 1);
  for (const std::string& line : *table) std::fputs((line + "\n").c_str(), stdout);
  std::fputs((printable(file.string()) + "\n").c_str(), stdout);
  return 0;
}

}  // namespace caftan::rl_bench
