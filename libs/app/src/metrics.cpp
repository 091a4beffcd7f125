#include "caftan/app/internal/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "caftan/app/internal/csv.hpp"
#include "file.hpp"

namespace caftan::app {
namespace {

constexpr std::string_view kHeading = "time_s,worker,metric,count,last,mean,min,max\r\n";

std::string json_number(double value) { return std::isfinite(value) ? csv_number(value) : "null"; }

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
  return csv_number(row.time_s) + "," + csv_field(row.worker) + "," + csv_field(row.metric) + "," +
         std::to_string(row.count) + "," + csv_number(row.last) + "," + csv_number(row.mean) + "," +
         csv_number(row.min) + "," + csv_number(row.max) + "\r\n";
}

std::string json_line(const MetricRow& row) {
  return "{\"time_s\":" + json_number(row.time_s) + ",\"worker\":" + json_string(row.worker) +
         ",\"metric\":" + json_string(row.metric) + ",\"count\":" + std::to_string(row.count) +
         ",\"last\":" + json_number(row.last) + ",\"mean\":" + json_number(row.mean) +
         ",\"min\":" + json_number(row.min) + ",\"max\":" + json_number(row.max) + "}\n";
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
