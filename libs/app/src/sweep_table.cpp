#include "caftan/app/internal/sweep_table.hpp"

#include <algorithm>
#include <set>

#include "caftan/base/internal/joined.hpp"
#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::app {
namespace {

constexpr const char* kRepeated = "run.seed";

std::vector<std::string> metrics_of(std::span<const SweepResult> results) {
  std::set<std::string> names;
  for (const SweepResult& result : results) {
    for (const auto& [name, value] : result.metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Result<std::vector<std::string>> select_metrics(std::vector<std::string> names, const std::string& wanted) {
  const std::string all = base::joined(names);
  std::vector<std::string> known = names;
  for (const std::string& name : names) known.push_back(name.substr(std::min(name.find('.') + 1, name.size())));
  std::erase_if(names, [&](const std::string& name) { return name != wanted && !name.ends_with("." + wanted); });
  if (!names.empty() || all.empty()) return names;
  const std::string near = did_you_mean(wanted, known);
  return Error(Errc::invalid_config, "no run has a metric '" + printable(wanted) + "'" + near +
                                         (near.empty() ? "; there are: " : " There are: ") + all);
}

/// Returns the values of a run's keys but run.seed.
std::vector<std::string> row_of(const SweepPlan& plan, std::size_t run) {
  const std::vector<std::string> values = plan.values_of(run);
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (plan.axes()[i].key != kRepeated) kept.push_back(values[i]);
  }
  return kept;
}

void fill(SweepRow& row, const std::vector<const SweepResult*>& results, const std::vector<std::string>& metrics) {
  row.runs = results.size();
  row.missed = static_cast<std::size_t>(
      std::ranges::count_if(results, [](const SweepResult* result) { return result->has_missed_goal; }));
  for (const std::string& metric : metrics) {
    std::vector<double> values;
    for (const SweepResult* result : results) {
      if (const auto found = result->metrics.find(metric); found != result->metrics.end()) {
        values.push_back(found->second);
      }
    }
    row.means.push_back(estimate_mean(values));
  }
}

std::string cell_text(const MeanEstimate& estimate, std::size_t runs) {
  if (estimate.count == 0) return "-";
  std::string text = format_digits(estimate.mean);
  if (estimate.half) text += " +- " + format_digits(*estimate.half, 3);
  if (estimate.count != runs) text += " (" + std::to_string(estimate.count) + ")";
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

}  // namespace

Result<SweepTable> make_sweep_table(const SweepPlan& plan, std::span<const SweepResult> results,
                                    const std::optional<std::string>& metric) {
  SweepTable table{.metrics = metrics_of(results)};
  if (metric) {
    auto selected = select_metrics(std::move(table.metrics), *metric);
    if (!selected) return selected.error();
    table.metrics = *std::move(selected);
  }
  for (const SweepAxis& axis : plan.axes()) {
    if (axis.key != kRepeated) table.keys.push_back(axis.key);
  }
  std::map<std::vector<std::string>, std::vector<const SweepResult*>> by_row;
  for (const SweepResult& result : results) by_row[row_of(plan, result.run)].push_back(&result);
  std::set<std::vector<std::string>> listed;
  for (std::size_t run = 0; run < plan.runs(); ++run) {
    SweepRow row{.values = row_of(plan, run)};
    if (!listed.insert(row.values).second) continue;
    fill(row, by_row[row.values], table.metrics);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> sweep_lines(const SweepTable& table) {
  std::vector<std::vector<std::string>> cells{table.keys};
  cells.front().emplace_back("n");
  const bool has_missed = std::ranges::any_of(table.rows, [](const SweepRow& row) { return row.missed > 0; });
  if (has_missed) cells.front().emplace_back("missed");
  cells.front().insert(cells.front().end(), table.metrics.begin(), table.metrics.end());
  for (const SweepRow& row : table.rows) {
    std::vector<std::string>& line = cells.emplace_back(row.values);
    line.push_back(std::to_string(row.runs));
    if (has_missed) line.push_back(std::to_string(row.missed));
    for (const MeanEstimate& estimate : row.means) line.push_back(cell_text(estimate, row.runs));
  }
  std::vector<std::size_t> widths(cells.front().size());
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& of : cells) {
    std::string line;
    for (std::size_t i = 0; i < of.size(); ++i) {
      line += printable(of[i]);
      if (i + 1 < of.size()) line.append(widths[i] - of[i].size() + 2, ' ');
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string sweep_csv(const SweepTable& table) {
  std::vector<std::string> heading = table.keys;
  heading.emplace_back("n");
  heading.emplace_back("missed");
  for (const std::string& metric : table.metrics) {
    for (const char* const column : {".n", ".mean", ".half"}) heading.push_back(metric + column);
  }
  std::string text = csv_line(heading);
  for (const SweepRow& row : table.rows) {
    std::vector<std::string> cells = row.values;
    cells.push_back(std::to_string(row.runs));
    cells.push_back(std::to_string(row.missed));
    for (const MeanEstimate& estimate : row.means) {
      cells.push_back(std::to_string(estimate.count));
      cells.push_back(estimate.count == 0 ? std::string() : format_number(estimate.mean));
      cells.push_back(estimate.half ? format_number(*estimate.half) : std::string());
    }
    text += csv_line(cells);
  }
  return text;
}

}  // namespace caftan::app
