#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "caftan/base/internal/settings_document.hpp"
#include "caftan/base/whole_file.hpp"
#include "caftan/results/run_curves.hpp"
#include "read_table.hpp"

namespace caftan::results {
namespace {

/// Returns the lines of a resolved file that decide what a run computes, without its seed.
std::string settings_of(const std::string& resolved) {
  std::string kept;
  std::string table;
  std::istringstream lines(resolved);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) table = line;
    const bool is_seed = table == "[run]" && line.starts_with("seed = ");
    if (!is_seed && !line.starts_with('#') && table != "[output]") kept += line + "\n";
  }
  return kept;
}

/// Fills in what resolved.toml says. A run whose folder has none is not grouped with other runs.
void read_settings_of(const std::filesystem::path& run, RunCurves& curves) {
  const std::string resolved = base::read_whole_file(run / "resolved.toml").value_or("");
  curves.name = curves.folder;
  curves.settings = resolved.empty() ? run.string() : settings_of(resolved);
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

Result<std::filesystem::path> table_of(const std::filesystem::path& run, Axis axis) {
  std::error_code error;
  if (!std::filesystem::is_directory(run, error)) {
    return Error(Errc::io_error, run.string() + ": there is no such folder of a run");
  }
  const std::filesystem::path file = run / (axis == Axis::step ? "curve.csv" : "metrics.csv");
  if (std::filesystem::is_regular_file(file, error)) return file;
  if (axis == Axis::time) return Error(Errc::io_error, run.string() + ": it has no metrics.csv, so it is no run");
  return Error(Errc::io_error, run.string() +
                                   ": it has no curve.csv: no role of the run has reported a metric with a step "
                                   "(RoleContext::metric(name, value, {.step = n})); --x time draws its metrics.csv");
}

}  // namespace

Result<RunCurves> read_run(const std::filesystem::path& run, Axis axis, const std::optional<std::string>& metric) {
  const auto file = table_of(run, axis);
  if (!file) return file.error();
  std::error_code error;
  RunCurves found{.folder = std::filesystem::canonical(run, error).filename().string()};
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
