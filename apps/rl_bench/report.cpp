#include "rl_bench/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "caftan/base/settings_io.hpp"

namespace caftan::rl_bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kResults = "benchmark_results";
constexpr const char* kAxis = "x_axis_name";
constexpr std::array<const char*, 5> kArguments{"world_size", "batch", "state_size", "nlayers", "out_features"};
constexpr std::array<const char*, 4> kMetrics{"agent latency (seconds)", "agent throughput",
                                              "observer latency (seconds)", "observer throughput"};

bool is_latency(const std::string& metric) { return metric.ends_with("(seconds)"); }

std::string key_of(int percent) { return "p" + std::to_string(percent); }

Error damaged(std::size_t number) {
  return {Errc::bad_arguments, "report " + std::to_string(number + 1) + " is damaged or is none of rl_bench"};
}

bool has_metrics(const Json& entry) {
  return entry.is_object() && std::ranges::all_of(kMetrics, [&](const char* metric) {
           return entry.contains(metric) && entry[metric].is_object() &&
                  std::ranges::all_of(kPercentiles, [&](int percent) {
                    return entry[metric].contains(key_of(percent)) && entry[metric][key_of(percent)].is_number();
                  });
         });
}

/// Returns the report; nothing if its text is no whole report.
std::optional<Json> parse(const std::string& text) {
  Json report = Json::parse(text, nullptr, false);
  if (!report.is_object() || !report.contains(kResults) || !report[kResults].is_array()) return std::nullopt;
  const Json& entries = report[kResults];
  if (entries.empty() || !std::ranges::all_of(entries, has_metrics)) return std::nullopt;
  return report;
}

bool is_of_one_run(const Json& report) {
  return report[kResults].size() == 1 &&
         std::ranges::all_of(kArguments, [&](const char* argument) { return report.contains(argument); });
}

/// Returns the arguments in which not all reports agree.
std::vector<std::string> find_axes(const std::vector<Json>& reports) {
  std::vector<std::string> axes;
  for (const char* argument : kArguments) {
    const Json& first = reports.front()[argument];
    const auto differs = [&](const Json& report) { return report[argument] != first; };
    if (std::ranges::any_of(reports, differs)) axes.emplace_back(argument);
  }
  return axes;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

constexpr std::size_t kColumn = 9;

std::string row_of(const Json& entry) {
  std::string row;
  for (const char* metric : kMetrics) {
    for (const int percent : kPercentiles) {
      const auto value = entry[metric][key_of(percent)].get<double>();
      row += padded(format_fixed(value, is_latency(metric) ? 6 : 0), kColumn);
    }
  }
  return row;
}

}  // namespace

std::string make_report(const Arguments& arguments, const std::vector<NamedPercentiles>& metrics) {
  Json entry = Json::object();
  for (const auto& [name, percentiles] : metrics) {
    for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
      Json& value = entry[name][key_of(kPercentiles[i])];
      if (is_latency(name)) {
        value = std::round(percentiles[i] * 1e6) / 1e6;
      } else {
        value = std::llround(std::floor(percentiles[i]));
      }
    }
  }
  const Json report{{"world_size", arguments.world_size},       {"batch", arguments.batch},
                    {"state_size", arguments.state_size},       {"nlayers", arguments.nlayers},
                    {"out_features", arguments.out_features},   {"output_file_path", kReportName},
                    {kResults, Json::array({std::move(entry)})}};
  return report.dump(2) + "\n";
}

Result<std::string> join_reports(const std::vector<std::string>& reports) {
  if (reports.empty()) return Error(Errc::bad_arguments, "there is no report");
  std::vector<Json> parsed;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    auto report = parse(reports[i]);
    if (!report || !is_of_one_run(*report)) return damaged(i);
    parsed.push_back(*std::move(report));
  }
  const std::vector<std::string> axes = find_axes(parsed);
  if (axes.size() != 1) {
    std::string names;
    for (const std::string& axis : axes) names += (names.empty() ? "" : ", ") + axis;
    return Error(Errc::bad_arguments,
                 "a report has one argument on its x axis, but these runs differ in " +
                     (axes.empty() ? "none" : std::to_string(axes.size()) + " (" + names + ")") +
                     ": sweep over exactly one of world_size, batch, state_size, nlayers and out_features");
  }
  const std::string& axis = axes.front();
  Json joined = parsed.front();
  joined.erase(axis);
  joined.erase(kResults);
  joined[kAxis] = axis;
  joined[kResults] = Json::array();
  for (Json& report : parsed) {
    Json entry = std::move(report[kResults].front());
    entry[axis] = report[axis];
    joined[kResults].push_back(std::move(entry));
  }
  return joined.dump(2) + "\n";
}

Result<std::vector<std::string>> table_of(const std::string& report) {
  const auto parsed = parse(report);
  if (!parsed) return damaged(0);
  std::vector<std::string> lines;
  for (const auto& [name, value] : parsed->items()) {
    if (name != kResults) lines.push_back(name + " : " + text_of(value));
  }
  const std::string axis = parsed->contains(kAxis) ? text_of((*parsed)[kAxis]) : std::string();
  const std::size_t first = std::max<std::size_t>(axis.size() + 2, 12);
  std::string heading = padded(axis, first);
  std::string percents(first, ' ');
  for (const char* metric : kMetrics) {
    heading += padded(metric, kColumn * kPercentiles.size());
    for (const int percent : kPercentiles) percents += padded(key_of(percent), kColumn);
  }
  lines.push_back(std::move(heading));
  lines.push_back(std::move(percents));
  for (const Json& entry : (*parsed)[kResults]) {
    lines.push_back(padded(entry.contains(axis) ? text_of(entry[axis]) : std::string(), first) + row_of(entry));
  }
  return lines;
}

}  // namespace caftan::rl_bench
