#include "sim_commands/series_plot.hpp"

#include <charconv>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "caftan/svg/internal/chart.hpp"

namespace caftan::sim_commands {
namespace {

template <class T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Puts one row, "time,lp,name,value", into the lines of its name. A name may have commas.
bool take(std::string_view row, std::map<std::string, std::map<std::uint32_t, svg::Series>>& charts) {
  const std::size_t first = row.find(',');
  const std::size_t second = row.find(',', first == std::string_view::npos ? first : first + 1);
  const std::size_t last = row.rfind(',');
  if (second == std::string_view::npos || last <= second) return false;
  const auto time = parsed<double>(row.substr(0, first));
  const auto lp = parsed<std::uint32_t>(row.substr(first + 1, second - first - 1));
  const auto value = parsed<double>(row.substr(last + 1));
  if (!time || !lp || !value) return false;
  auto& lines = charts[std::string(row.substr(second + 1, last - second - 1))];
  if (lines.size() >= kMostLines && !lines.contains(*lp)) return true;
  svg::Series& line = lines[*lp];
  line.label = "LP " + std::to_string(*lp);
  line.x.push_back(*time);
  line.y.push_back(*value);
  return true;
}

}  // namespace

Result<std::string> draw_series(const std::filesystem::path& run) {
  const std::filesystem::path file = run / "series.csv";
  std::ifstream stream(file);
  std::string row;
  if (!std::getline(stream, row)) {
    return Error(Errc::io_error,
                 file.string() +
                     ": it is not there; name the folder of one run (of a sweep SWEEP/001/latest) that has " +
                     "recorded a series: roles.clock.config.record.series='[\"NAME\"]'");
  }
  std::map<std::string, std::map<std::uint32_t, svg::Series>> charts;
  for (std::size_t number = 2; std::getline(stream, row); ++number) {
    if (take(row, charts) || stream.eof()) continue;  // the last row of a run that was killed may be cut off
    return Error(Errc::malformed_payload, file.string() + ":" + std::to_string(number) + ": no row of a series");
  }
  std::vector<svg::Chart> drawn;
  for (auto& [name, lines] : charts) {
    svg::Chart chart{.title = name, .x_label = "virtual time"};
    for (auto& [lp, line] : lines) chart.series.push_back(std::move(line));
    drawn.push_back(std::move(chart));
  }
  return svg::render(drawn, drawn.size() == 1 ? 1 : 2);
}

}  // namespace caftan::sim_commands
