#include "caftan/app/summary.hpp"

#include <nlohmann/json.hpp>

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

}  // namespace caftan::app
