#include "caftan/app/metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "file.hpp"

namespace caftan::app {
namespace {

constexpr std::string_view kHeading = "time_s,worker,metric,count,last,mean,min,max\r\n";

std::string number(double value, std::string_view not_finite) {
  if (!std::isfinite(value) && !not_finite.empty()) return std::string(not_finite);
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped.data();
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string csv_line(const MetricRow& row) {
  return number(row.time_s, "") + "," + csv_field(row.worker) + "," + csv_field(row.metric) + "," +
         std::to_string(row.count) + "," + number(row.last, "") + "," + number(row.mean, "") + "," +
         number(row.min, "") + "," + number(row.max, "") + "\r\n";
}

std::string json_line(const MetricRow& row) {
  return "{\"time_s\":" + number(row.time_s, "null") + ",\"worker\":" + json_string(row.worker) +
         ",\"metric\":" + json_string(row.metric) + ",\"count\":" + std::to_string(row.count) +
         ",\"last\":" + number(row.last, "null") + ",\"mean\":" + number(row.mean, "null") +
         ",\"min\":" + number(row.min, "null") + ",\"max\":" + number(row.max, "null") + "}\n";
}

}  // namespace

void MetricTable::add(std::string_view worker, std::string_view metric, double value) {
  const std::pair<std::string, std::string> key(worker, metric);
  Sum& sum = open_[key];
  sum.min = sum.count == 0 ? value : std::min(sum.min, value);
  sum.max = sum.count == 0 ? value : std::max(sum.max, value);
  sum.total += value;
  ++sum.count;
  last_[key] = value;
}

std::vector<MetricRow> MetricTable::drain(double time_s) {
  std::vector<MetricRow> rows;
  for (const auto& [key, sum] : open_) {
    rows.push_back({.time_s = time_s,
                    .worker = key.first,
                    .metric = key.second,
                    .count = sum.count,
                    .last = last_[key],
                    .mean = sum.total / static_cast<double>(sum.count),
                    .min = sum.min,
                    .max = sum.max});
  }
  open_.clear();
  return rows;
}

struct MetricsWriter::Files {
  File csv;
  File jsonl;
};

MetricsWriter::MetricsWriter(std::unique_ptr<Files> files) : files_(std::move(files)) {}
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;
MetricsWriter::~MetricsWriter() = default;

Result<MetricsWriter> MetricsWriter::create(const std::filesystem::path& run_directory) {
  Result<File> csv = File::create(run_directory / "metrics.csv");
  if (!csv) return csv.error();
  Result<File> jsonl = File::create(run_directory / "metrics.jsonl");
  if (!jsonl) return jsonl.error();
  if (auto written = csv->write(kHeading); !written) return written.error();
  return MetricsWriter(std::make_unique<Files>(Files{*std::move(csv), *std::move(jsonl)}));
}

Result<void> MetricsWriter::write(std::span<const MetricRow> rows) {
  for (const MetricRow& row : rows) {
    if (auto written = files_->csv.write(csv_line(row)); !written) return written;
    if (auto written = files_->jsonl.write(json_line(row)); !written) return written;
  }
  return {};
}

}  // namespace caftan::app
