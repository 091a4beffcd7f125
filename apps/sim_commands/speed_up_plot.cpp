#include "sim_commands/speed_up_plot.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/app/internal/csv.hpp"
#include "caftan/svg/internal/chart.hpp"

namespace caftan::sim_commands {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReplicas = ".replicas";
constexpr std::string_view kMean = ".seconds.mean";
constexpr std::string_view kHalf = ".seconds.half";

/// The time of the runs of one row: its mean, and half of its interval.
struct Times {
  double mean = 0;
  double half = 0;  // 0: a single run
};
/// By number of replicas.
using Line = std::map<double, Times>;

/// Returns a number that is finite.
std::optional<double> number(std::string_view field) {
  const std::optional<double> value = app::number_of(field);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Where the heading of a sweep has what is drawn.
struct Columns {
  std::vector<std::string> heading{};
  std::size_t keys = 0;  // columns before `n`
  std::size_t replicas = 0;
  std::size_t mean = 0;
  std::size_t half = 0;

  static Result<Columns> find(const fs::path& file, std::vector<std::string> heading) {
    Columns found{.heading = std::move(heading)};
    const std::size_t columns = found.heading.size();
    while (found.keys < columns && found.heading[found.keys] != "n") ++found.keys;
    found.replicas = found.mean = found.half = columns;
    std::size_t varied = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string& name = found.heading[i];
      if (i < found.keys && name.ends_with(kReplicas)) found.replicas = i, ++varied;
      if (name.ends_with(kMean)) found.mean = i;
      if (name.ends_with(kHalf)) found.half = i;
    }
    if (varied != 1)
      return Error(
          Errc::bad_arguments,
          file.string() +
              ": the sweep must vary the replicas of one role: caftan sweep FILE roles.partition.replicas=1,2,4");
    if (found.mean == columns || found.half == columns)
      return Error(Errc::bad_arguments,
                   file.string() +
                       ": there is no time of a simulation's clock (CLOCK.seconds); with --metric a sweep keeps no "
                       "other metrics");
    return found;
  }
  /// Returns the settings of a row but the replicas, for the legend.
  std::string label(const std::vector<std::string>& cells) const {
    std::string text;
    for (std::size_t i = 0; i < keys; ++i) {
      if (i == replicas) continue;
      text += (text.empty() ? "" : ", ") + heading[i].substr(heading[i].rfind('.') + 1) + "=" + cells[i];
    }
    return text.empty() ? "measured" : text;
  }
};

svg::Series drawn(const std::string& label, const Line& line) {
  svg::Series series{.label = label};
  const Times& first = line.begin()->second;
  for (const auto& [replicas, times] : line) {
    series.x.push_back(replicas);
    series.y.push_back(first.mean / times.mean);
    series.low.push_back(first.mean / (times.mean + times.half));
    // An interval that has 0 in it bounds nothing.
    series.high.push_back(times.half < times.mean ? first.mean / (times.mean - times.half)
                                                  : std::numeric_limits<double>::quiet_NaN());
  }
  return series;
}

}  // namespace

bool is_sweep(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "sweep.csv", ignored);
}

Result<std::string> draw_speed_up(const fs::path& sweep) {
  const fs::path file = sweep / "sweep.csv";
  std::ifstream stream(file);
  app::CsvReader reader(stream);
  std::vector<std::string> cells;
  const Result<bool> head = reader.next(cells);
  if (!head || !*head) return Error(Errc::io_error, file.string() + ": it is not there, or has no heading");
  const Result<Columns> columns = Columns::find(file, std::move(cells));
  if (!columns) return columns.error();
  std::map<std::string, Line> lines;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (;;) {
    const Result<bool> read = reader.next(cells);
    const std::string place = file.string() + ":" + std::to_string(reader.line());
    if (!read) return Error(read.error().code(), place + ": " + read.error().message());
    if (!*read) break;
    const bool is_whole = cells.size() == columns->heading.size();
    const auto replicas = is_whole ? number(cells[columns->replicas]) : std::nullopt;
    if (!replicas || *replicas < 1) return Error(Errc::malformed_payload, place + ": no row of a sweep");
    const auto mean = number(cells[columns->mean]);
    if (!mean || *mean <= 0) continue;  // no run of this row went to its end
    lines[columns->label(cells)][*replicas] = {*mean, number(cells[columns->half]).value_or(0)};
    least = std::min(least, *replicas);
    most = std::max(most, *replicas);
  }
  svg::Chart chart{
      .title = "speed-up against " + std::to_string(std::lround(least)) + (least == 1 ? " partition" : " partitions"),
      .x_label = "partitions"};
  for (const auto& [label, line] : lines) chart.series.push_back(drawn(label, line));
  if (lines.empty()) return Error(Errc::bad_arguments, file.string() + ": no run went to its end");
  chart.series.push_back({.label = "as many times as quick", .x = {least, most}, .y = {1, most / least}});
  return svg::render({&chart, 1});
}

}  // namespace caftan::sim_commands
