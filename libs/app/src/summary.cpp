#include "caftan/app/summary.hpp"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "caftan/app/run_directory.hpp"

namespace caftan::app {

std::string summary_text(const RunSummary& summary) {
  using Json = nlohmann::ordered_json;
  Json workers = Json::array();
  for (const RunSummary::Worker& worker : summary.workers) {
    workers.push_back({{"name", worker.name}, {"host", worker.host}, {"pid", worker.pid}, {"error", worker.error}});
  }
  Json frames = Json::object();
  for (const auto& [kind, sent] : summary.frames_sent) frames[kind] = {{"frames", sent.frames}, {"bytes", sent.bytes}};
  Json json;
  json["name"] = summary.name;
  json["outcome"] = summary.outcome;
  json["exit_code"] = summary.exit_code;
  json["duration_s"] = summary.duration_s;
  json["seed"] = summary.seed;
  json["placement"] = summary.placement;
  json["deterministic"] = summary.deterministic;
  json["fingerprint"] = summary.fingerprint ? Json(*summary.fingerprint) : Json(nullptr);
  json["error"] = summary.error;
  json["metrics"] = summary.metrics;
  json["frames_sent"] = frames;
  json["environment"] = summary.environment;
  json["workers"] = workers;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string frames_table(const std::map<std::string, RunSummary::Sent>& sent) {
  std::string table = "sent                      frames            bytes";
  for (const auto& [kind, sum] : sent) {
    std::array<char, 96> line{};
    std::snprintf(line.data(), line.size(), "\n%-20s %11llu %16llu", kind.c_str(),
                  static_cast<unsigned long long>(sum.frames), static_cast<unsigned long long>(sum.bytes));
    table += line.data();
  }
  return table;
}

}  // namespace caftan::app
