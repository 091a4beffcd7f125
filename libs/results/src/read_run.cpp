#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "caftan/app/internal/curve.hpp"
#include "caftan/base/internal/settings_document.hpp"
#include "caftan/base/whole_file.hpp"
#include "caftan/results/run_curves.hpp"
#include "read_table.hpp"

namespace caftan::results {
namespace {

// By these names the folder of a run, a folder with runs in it, and the folder of a sweep are recognized.
constexpr const char* kResolved = "resolved.toml";
constexpr const char* kLatest = "latest";
constexpr const char* kSweep = "sweep.toml";

/// Fills in the settings that decide what a run computes: the lines of a resolved file without the run's seed and
/// [output].
void read_lines(const std::string& resolved, RunCurves& curves) {
  std::string table;
  std::istringstream lines(resolved);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) table = line;
    const bool is_seed = table == "[run]" && line.starts_with("seed = ");
    if (is_seed || line.starts_with('#') || table == "[output]") continue;
    curves.settings += line + "\n";
    const std::size_t equals = line.find(" = ");
    if (line.starts_with('[') || equals == std::string::npos) continue;
    const std::string of = table.empty() ? "" : table.substr(1, table.size() - 2) + ".";
    curves.values[of + line.substr(0, equals)] = line.substr(equals + 3);
  }
}

/// Fills in what resolved.toml says. A run whose folder has none is not grouped with other runs.
void read_settings_of(const std::filesystem::path& run, RunCurves& curves) {
  const std::string resolved = base::read_whole_file(run / kResolved).value_or("");
  curves.name = curves.folder;
  if (resolved.empty()) curves.settings = run.string();
  read_lines(resolved, curves);
  Diagnostics ignored;
  const SettingsNode root = parse_settings(resolved, ignored);
  const SettingsEntry* const table = root.find("run");
  if (!table) return;
  if (const SettingsEntry* const name = table->value.find("name")) {
    if (const auto* text = std::get_if<std::string>(&name->value.scalar)) curves.name = *text;
  }
  if (const SettingsEntry* const seed = table->value.find("seed")) {
    if (const auto* number = std::get_if<std::int64_t>(&seed->value.scalar)) curves.seed = *number;
  }
}

/// Orders the points by x; of several points at one x the last one stays.
void order(Curve& curve) {
  const auto is_not_before = [](double a, double b) { return !(a < b); };
  if (std::ranges::adjacent_find(curve.x, is_not_before) == curve.x.end()) return;
  std::vector<std::pair<double, double>> points;
  points.reserve(curve.x.size());
  for (std::size_t i = 0; i < curve.x.size(); ++i) points.emplace_back(curve.x[i], curve.y[i]);
  std::ranges::stable_sort(points, [](const auto& a, const auto& b) { return a.first < b.first; });
  curve.x.clear();
  curve.y.clear();
  for (const auto& [x, y] : points) {
    if (curve.x.empty() || curve.x.back() != x) {
      curve.x.push_back(x);
      curve.y.push_back(y);
    } else {
      curve.y.back() = y;
    }
  }
}

const char* table_name(Axis axis) { return axis == Axis::step ? app::kCurveFile : "metrics.csv"; }

bool has_file(const std::filesystem::path& folder, const char* name) {
  std::error_code error;
  return std::filesystem::is_regular_file(folder / name, error);
}

Result<std::filesystem::path> table_of(const std::filesystem::path& run, Axis axis) {
  std::error_code error;
  if (!std::filesystem::is_directory(run, error)) {
    return Error(Errc::io_error, run.string() + ": there is no such folder of a run");
  }
  if (has_file(run, table_name(axis))) return run / table_name(axis);
  const std::string lacks = run.string() + ": it has no " + table_name(axis);
  if (!has_file(run, kResolved)) {
    return Error(Errc::io_error, lacks + " and no " + kResolved +
                                     ", so it is no folder of a run; give one, as runs/latest, or that of a sweep");
  }
  if (axis == Axis::time) return Error(Errc::io_error, lacks);
  return Error(Errc::io_error, lacks +
                                   ": no role of the run has reported a metric with a step "
                                   "(RoleContext::metric(name, value, {.step = n})); --x time draws its metrics.csv");
}

/// Returns the newest try of each run of a sweep that has the file of the axis.
Result<std::vector<std::filesystem::path>> runs_of_sweep(const std::filesystem::path& sweep, Axis axis) {
  std::error_code error;
  std::filesystem::directory_iterator entries(sweep, error);
  if (error) return Error(Errc::io_error, sweep.string() + ": " + error.message());
  std::vector<std::filesystem::path> runs;
  for (const std::filesystem::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && has_file(entry.path() / kLatest, table_name(axis))) runs.push_back(entry.path() / kLatest);
  }
  if (runs.empty()) {
    return Error(Errc::io_error, sweep.string() + ": no run of this sweep has a " + table_name(axis) +
                                     (axis == Axis::step ? " yet; --x time draws metrics without a step" : " yet"));
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace

Result<std::vector<std::filesystem::path>> find_runs(const std::filesystem::path& path, Axis axis) {
  if (has_file(path, kSweep)) return runs_of_sweep(path, axis);
  std::error_code error;
  const bool is_run = has_file(path, kResolved) || has_file(path, table_name(axis));
  const bool has_runs = !is_run && std::filesystem::is_directory(path / kLatest, error);
  return std::vector<std::filesystem::path>{has_runs ? path / kLatest : path};
}

Result<RunCurves> read_run(const std::filesystem::path& run, Axis axis, const std::optional<std::string>& metric) {
  const auto file = table_of(run, axis);
  if (!file) return file.error();
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(run, error);
  RunCurves found{.folder = folder.filename().string(), .parent = folder.parent_path().filename().string()};
  read_settings_of(run, found);
  std::map<std::string, Curve> curves;
  std::size_t points = 0;
  const auto take = [&](const std::string& name, double x, double y) -> Result<void> {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string of = name.substr(std::min(dot + 1, name.size()));
    if (!metric || *metric == of || *metric == name) {
      if (++points > kMostPoints) {
        return Error(Errc::limit_exceeded, file->string() + ": it has more than " + std::to_string(kMostPoints) +
                                               " points of what is to be drawn; choose one with --metric");
      }
      Curve& curve = curves[name];
      if (curve.x.empty()) {
        curve.worker = name.substr(0, dot);
        curve.metric = of;
      }
      curve.x.push_back(x);
      curve.y.push_back(y);
    }
    if (!found.metrics.contains(of)) found.metrics.insert(of);
    return {};
  };
  const auto read = axis == Axis::step ? read_steps(*file, take) : read_times(*file, take);
  if (!read) return read.error();
  for (auto& [name, curve] : curves) {
    order(curve);
    found.curves.push_back(std::move(curve));
  }
  return found;
}

}  // namespace caftan::results
