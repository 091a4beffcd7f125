#include "caftan/app/internal/summary.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace caftan::app {

std::string summary_text(const RunSummary& summary) {
  using Json = nlohmann::ordered_json;
  Json workers = Json::array();
  for (const RunSummary::Worker& worker : summary.workers) {
    workers.push_back({{"name", worker.name}, {"host", worker.host}, {"pid", worker.pid}, {"error", worker.error}});
  }
  Json lost = Json::array();
  for (const RunSummary::Lost& one : summary.lost) {
    lost.push_back({{"name", one.name}, {"after_s", one.after_s}, {"error", one.error}});
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
  json["error_code"] = summary.error_code;
  json["lost"] = lost;
  json["metrics"] = summary.metrics;
  json["frames_sent"] = frames;
  json["environment"] = summary.environment;
  json["workers"] = workers;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunSummary> read_summary(std::string_view text) {
  using Json = nlohmann::json;
  const Error malformed(Errc::malformed_payload, "no summary of a run with its metrics");
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object() || !json.contains("metrics") || !json["metrics"].is_object()) return malformed;
  RunSummary summary;
  for (const auto& [name, value] : json["metrics"].items()) {
    if (!value.is_number() && !value.is_null()) return malformed;
    summary.metrics[name] = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  }
  for (const auto& [key, member] : {std::pair("error", &summary.error), std::pair("error_code", &summary.error_code)}) {
    if (!json.contains(key)) continue;
    if (!json[key].is_string()) return malformed;
    *member = json[key].get<std::string>();
  }
  return summary;
}

}  // namespace caftan::app
