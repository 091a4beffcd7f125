#include "ps_bench/report.hpp"

#include <optional>
#include <utility>

#include "caftan/base/settings_io.hpp"

namespace caftan::ps_bench {
namespace {

constexpr const char* kAll = "all";

/// A role's workers, and all of them together as one more.
std::vector<Measured> with_all(const std::vector<Measured>& workers) {
  std::vector<Times> times;
  for (const Measured& worker : workers) times.push_back(worker.times);
  std::vector<Measured> all = workers;
  all.push_back({.worker = kAll, .times = join(times)});
  return all;
}

std::string padded(std::string text, std::size_t width, bool to_the_right = false) {
  if (text.size() >= width) return text;
  return text.insert(to_the_right ? 0 : text.size(), width - text.size(), ' ');
}

constexpr std::size_t kNameWidth = 58;
constexpr std::size_t kColumn = 11;
constexpr int kDecimals = 4;

std::string cell(std::optional<double> value) {
  return padded(value ? format_fixed(*value, kDecimals) : "-", kColumn, true);
}

void append_table(const std::string& heading, const Times& times, std::vector<std::string>& lines) {
  std::string head = padded(heading + ", ms", kNameWidth);
  for (const char* column : {"count", "min", "max", "mean", "variance", "stdev"}) head += padded(column, kColumn, true);
  lines.push_back(std::move(head));
  for (const auto& [name, values] : times) {
    const Statistics found = statistics_of(values);
    lines.push_back(padded("  " + name, kNameWidth) + padded(std::to_string(found.count), kColumn, true) +
                    cell(found.min) + cell(found.max) + cell(found.mean) + cell(found.variance) + cell(found.stdev));
  }
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

std::string number_or(std::optional<double> value, const char* otherwise) {
  return value ? format_number(*value) : otherwise;
}

std::string json_of(const Statistics& found) {
  return "{\"count\": " + std::to_string(found.count) + ", \"min\": " + format_number(found.min) +
         ", \"max\": " + format_number(found.max) + ", \"mean\": " + format_number(found.mean) +
         ", \"variance\": " + number_or(found.variance, "null") + ", \"stdev\": " + number_or(found.stdev, "null") +
         "}";
}

std::string json_of(const std::vector<Measured>& workers) {
  std::string text = "{";
  for (const Measured& worker : workers) {
    text += (text.size() > 1 ? ",\n    " : "\n    ") + quoted(worker.worker) + ": {";
    bool first = true;
    for (const auto& [name, values] : worker.times) {
      text += (std::exchange(first, false) ? "\n      " : ",\n      ") + quoted(name) + ": " +
              json_of(statistics_of(values));
    }
    text += "\n    }";
  }
  return text + "\n  }";
}

std::string json_of(const MasterConfig& config) {
  const std::vector<std::pair<const char*, std::string>> fields{
      {"rule", quoted(name_of(config.rule))},
      {"layout", quoted(name_of(config.layout))},
      {"lr", format_number(config.lr)},
      {"batch", std::to_string(config.batch)},
      {"epochs", std::to_string(config.epochs)},
      {"warm_up", std::to_string(config.warm_up)},
      {"bucket_bytes", std::to_string(config.bucket.bytes)},
      {"samples", std::to_string(config.data.samples)},
      {"length", std::to_string(config.data.length)},
      {"max_value", std::to_string(config.data.max_value)},
      {"sparsity", std::to_string(config.data.sparsity)},
      {"num_embeddings", std::to_string(config.model.num_embeddings)},
      {"embedding_dim", std::to_string(config.model.embedding_dim)},
      {"dense_layers", std::to_string(config.model.dense_layers)},
      {"sparse", config.model.sparse ? "true" : "false"}};
  std::string text;
  for (const auto& [name, value] : fields) text += ",\n    " + quoted(name) + ": " + value;
  return text;
}

void append_rows(const char* role, const std::vector<Measured>& workers, std::string& text) {
  for (const Measured& worker : workers) {
    for (const auto& [name, values] : worker.times) {
      const Statistics found = statistics_of(values);
      text += std::string(role) + "," + worker.worker + "," + quoted(name) + "," + std::to_string(found.count) + "," +
              format_number(found.min) + "," + format_number(found.max) + "," + format_number(found.mean) + "," +
              number_or(found.variance, "") + "," + number_or(found.stdev, "") + "\n";
    }
  }
}

}  // namespace

const char* name_of(Rule rule) noexcept {
  switch (rule) {
    case Rule::average:
      return "average";
    case Rule::immediate:
      return "immediate";
    default:
      return "average_batch";
  }
}

const char* name_of(Layout layout) noexcept { return layout == Layout::shards ? "shards" : "groups"; }

std::string count_of(std::int64_t count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::vector<std::string> tables_of(const Report& report) {
  std::vector<std::string> lines;
  for (const Measured& worker : report.trainers) append_table(worker.worker, worker.times, lines);
  append_table("all trainers", with_all(report.trainers).back().times, lines);
  for (const Measured& worker : report.servers) append_table(worker.worker, worker.times, lines);
  append_table("all servers", with_all(report.servers).back().times, lines);
  return lines;
}

std::string json_of(const Report& report) {
  return "{\n  \"arguments\": {\n    \"servers\": " + std::to_string(report.servers.size()) +
         ",\n    \"trainers\": " + std::to_string(report.trainers.size()) + json_of(report.config) +
         "\n  },\n  \"seconds\": " + format_number(report.seconds) +
         ",\n  \"batches\": " + std::to_string(report.batches) +
         ",\n  \"unit\": \"ms\",\n  \"trainers\": " + json_of(with_all(report.trainers)) +
         ",\n  \"servers\": " + json_of(with_all(report.servers)) + "\n}\n";
}

std::string csv_of(const Report& report) {
  std::string text = "role,worker,metric,count,min,max,mean,variance,stdev\n";
  append_rows("trainer", with_all(report.trainers), text);
  append_rows("server", with_all(report.servers), text);
  return text;
}

}  // namespace caftan::ps_bench
